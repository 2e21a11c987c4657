// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/copy_report.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include "report/table.h"

namespace sealane::bench {
namespace {

using Figure = double CopyRun::*;

const CopyRow* find_row(const CopyReport& report, const CopyCase& what, std::string_view policy) {
  for (const CopyRow& row : report.rows) {
    if (row.what == what && row.policy->name == policy) return &row;
  }
  return nullptr;
}

// What a policy leaves of what stock CC mode costs over `base`, which is CC off or nothing.
std::string left_of_stock(const CopyReport& report, const CopyRow& row, Figure figure,
                          bool over_off) {
  const CopyRow* off = find_row(report, row.what, "off");
  const CopyRow* stock = find_row(report, row.what, "stock");
  if (off == nullptr || stock == nullptr || !row.policy->ours()) return "";
  if (!row.in_time() || !off->in_time() || !stock->in_time()) return "?";
  const double base = over_off ? off->median(figure) : 0;
  const double loss = stock->median(figure) - base;
  return loss > 0 ? fmt::format("{:.2f}", (row.median(figure) - base) / loss) : "?";
}

std::string case_table(const CopyReport& report, const CopyCase& what) {
  report::Table table({{"policy", report::Align::left},
                       {"total ms"},
                       {"spread"},
                       {"loss left"},
                       {"blocked ms"},
                       {"spread"},
                       {"of stock"},
                       {"foreseen"}});
  for (const CopyRow& row : report.rows) {
    if (row.what != what) continue;
    const double foreseen = row.median(&CopyRun::hit_rate);
    table.add_row({row.policy->name, milliseconds(row, &CopyRun::total_s),
                   spread(row, &CopyRun::total_s), loss_left(report, row),
                   milliseconds(row, &CopyRun::blocked_s), spread(row, &CopyRun::blocked_s),
                   left_of_stock(report, row, &CopyRun::blocked_s, false),
                   foreseen > 0 ? fmt::format("{:.0f} %", foreseen * 100) : ""});
  }
  return table.text();
}

std::string tables_of(const CopyReport& report,
                      std::string (*table)(const CopyReport&, const CopyCase&)) {
  std::string text;
  const CopyCase* last = nullptr;
  for (const CopyRow& row : report.rows) {
    if (last != nullptr && row.what == *last) continue;
    last = &row.what;
    text += fmt::format("\n{}\n{}", row.what.name(), table(report, row.what));
  }
  return text;
}

std::string headline(const CopyReport& report, const char* beside) {
  return fmt::format(
      "MEASURED on the emulated GPU, platform {}, device time, median of {} round{}{}\n",
      report.platform, report.rounds, report.rounds == 1 ? "" : "s", beside);
}

// The step before one, as far as it was run: each adds something to that.
const CopyRow* step_before(const CopyReport& report, const CopyRow& row) {
  if (row.policy->name == "stock" || row.policy->name == "off") return nullptr;
  constexpr std::array<std::string_view, 4> kSteps{"stock", "engine", "async", "parallel"};
  const CopyRow* before = nullptr;
  for (const std::string_view step : kSteps) {
    if (step == row.policy->name) break;
    if (const CopyRow* found = find_row(report, row.what, step)) before = found;
  }
  return before;
}

double measured_ms(const CopyRow& row) { return row.median(&CopyRun::total_s) * 1e3; }
double simulated_ms(const CopyRow& row) { return *row.simulated_s * 1e3; }

std::string compared_table(const CopyReport& report, const CopyCase& what) {
  report::Table table({{"policy", report::Align::left},
                       {"measured ms"},
                       {"simulated"},
                       {"step, measured"},
                       {"simulated"},
                       {"differ by"}});
  const CopyRow* const off = find_row(report, what, "off");
  const CopyRow* const stock = find_row(report, what, "stock");
  for (const CopyRow& row : report.rows) {
    if (row.what != what || !row.simulated_s) continue;
    std::vector<std::string> cells{row.policy->name, milliseconds(row, &CopyRun::total_s),
                                   fmt::format("{:.2f}", simulated_ms(row))};
    const CopyRow* const before = step_before(report, row);
    const auto share = [&](double (*of)(const CopyRow&)) {
      return (of(*before) - of(row)) / (of(*stock) - of(*off));
    };
    if (off != nullptr && stock != nullptr && before != nullptr) {
      const double measured = share(&measured_ms);
      const double simulated = share(&simulated_ms);
      for (const double one : {measured, simulated, simulated - measured}) {
        cells.push_back(fmt::format("{:+.2f}", one));
      }
    }
    cells.resize(6);
    table.add_row(std::move(cells));
  }
  return table.text();
}

}  // namespace

std::string CopyCase::name() const {
  if (workers.empty()) return example->name;
  return fmt::format("{}, {} worker{}", example->name, workers, workers == "1" ? "" : "s");
}

bool CopyRow::in_time() const {
  return std::any_of(runs.begin(), runs.end(), [](const CopyRun& run) { return run.in_time(); });
}

Summary CopyRow::summary(Figure figure) const {
  std::vector<double> values;
  for (const CopyRun& run : runs) {
    if (run.in_time() || !in_time()) values.push_back(run.*figure);
  }
  return summarize(std::move(values));
}

std::string milliseconds(const CopyRow& row, Figure figure) {
  return fmt::format("{:.2f}{}", row.median(figure) * 1e3, row.in_time() ? "" : " !");
}

std::string spread(const CopyRow& row, Figure figure) {
  return row.runs.size() < 2 ? "-" : fmt::format("{:.0f} %", row.summary(figure).spread_pct);
}

std::string loss_left(const CopyReport& report, const CopyRow& row) {
  return left_of_stock(report, row, &CopyRun::total_s, true);
}

std::string overrun_lines(const CopyReport& report) {
  size_t runs = 0;
  size_t late = 0;
  bool marked = false;
  for (const CopyRow& row : report.rows) {
    runs += row.runs.size();
    late += static_cast<size_t>(std::count_if(row.runs.begin(), row.runs.end(),
                                              [](const CopyRun& run) { return !run.in_time(); }));
    marked = marked || !row.in_time();
  }
  if (late == 0) return {};
  std::string text = fmt::format(
      "\n{} of {} runs did not keep the modelled pace: this machine is too slow for\n"
      "it, or busy. They are left out{}; a larger --dilation helps.\n",
      late, runs, marked ? "" : " of all medians");
  if (marked) {
    text +=
        "'!' marks a figure that has no other runs: it is not the modelled machine's,\n"
        "and '?' what cannot be worked out without it.\n";
  }
  return text;
}

// One round has no spread: then nothing is known.
std::string slower_lines(const CopyReport& report) {
  std::string text;
  for (const CopyRow& row : report.rows) {
    if (row.policy->name != "sealane" || row.runs.size() < 2 || !row.in_time()) continue;
    const Summary whole = row.summary(&CopyRun::total_s);
    const CopyRow* fastest = nullptr;  // of those that it is slower than
    for (const char* part : {"engine", "async", "parallel"}) {
      const CopyRow* const one = find_row(report, row.what, part);
      if (one == nullptr || !one->in_time()) continue;
      const Summary alone = one->summary(&CopyRun::total_s);
      const double noise =
          (whole.median * whole.spread_pct + alone.median * alone.spread_pct) / 100;
      const bool slower = whole.median - alone.median > noise;
      const bool first = fastest == nullptr || alone.median < fastest->median(&CopyRun::total_s);
      if (slower && first) fastest = one;
    }
    if (fastest == nullptr) continue;
    text += fmt::format("\n{}: sealane took {:.2f} of the time of {}.", row.what.name(),
                        whole.median / fastest->median(&CopyRun::total_s), fastest->policy->name);
  }
  if (text.empty()) return {};
  return text +
         "\nWhat it does beyond its parts (it looks for what repeats, seals ahead where that\n"
         "seems to pay, and guards what it sealed) takes time and cores, and gained nothing\n"
         "there, or this machine was disturbed: more --rounds tell. `sealane run --policy\n"
         "parallel` leaves it out.\n";
}

std::string copy_tables(const CopyReport& report) {
  std::string text = headline(report, "") + tables_of(report, &case_table);
  text +=
      "\ntotal: end to end. loss left: of what stock CC mode costs over off. blocked:\n"
      "callers in copies. foreseen: swaps that were predicted. spread: interquartile\n"
      "range, of the median. sealane: what `sealane run` does if nobody says anything.\n";
  return text + slower_lines(report) + overrun_lines(report);
}

std::string simulated_tables(const CopyReport& report) {
  return headline(report,
                  ",\nbeside SIMULATED: the same program, recorded without CC, in the "
                  "simulator") +
         tables_of(report, &compared_table) +
         "\nstep: of what stock CC mode costs over off, the share that a policy takes away\n"
         "beyond the one before it (stock, engine, async, parallel; speculate and sealane\n"
         "beyond parallel). differ by: simulated less measured.\n" +
         overrun_lines(report);
}

nlohmann::json row_json(const CopyRow& row) {
  const Summary total = row.summary(&CopyRun::total_s);
  nlohmann::json out = {{"policy", row.policy->name},
                        {"total_s", total.median},
                        {"spread_pct", total.spread_pct},
                        {"blocked_s", row.median(&CopyRun::blocked_s)},
                        {"overrun", row.median(&CopyRun::overrun)},
                        {"in_time", row.in_time()},
                        {"copies", row.runs.front().copies},
                        {"bytes", row.runs.front().bytes},
                        {"tokens_per_s", row.median(&CopyRun::tokens_per_s)}};
  if (!row.what.workers.empty()) out["workers"] = row.what.workers;
  return out;
}

nlohmann::json copy_json(const CopyReport& report) {
  nlohmann::json out = {{"label", "MEASURED (emulated GPU)"},
                        {"time", "device time"},
                        {"platform", report.platform},
                        {"rounds", report.rounds},
                        {"rows", nlohmann::json::array()}};
  for (const CopyRow& row : report.rows) {
    nlohmann::json& one = out["rows"].emplace_back(row_json(row));
    one["example"] = row.what.example->name;
    one["hit_rate"] = row.median(&CopyRun::hit_rate);
    if (row.simulated_s) one["simulated_s"] = *row.simulated_s;
  }
  return out;
}

}  // namespace sealane::bench
