// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane bench copy`: the examples on the emulated GPU without CC mode, with it as shipped, and
// with one part of the runtime after the other. Policies are interleaved: every round runs all of
// them, case by case (an example with a number of workers), in an order shuffled anew; figures are
// medians over rounds.

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "cli/bench.h"
#include "cli/copy_trial.h"
#include "cli/interleave.h"
#include "cli/number.h"
#include "cli/progress.h"
#include "cli/run_environment.h"
#include "cli/scratch.h"
#include "cli/suggest.h"
#include "report/output.h"
#include "report/table.h"

namespace sealane::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Flags {
  std::vector<std::string> examples;
  std::vector<std::string> policies;
  std::string examples_dir;
  std::string platform = "h100-tdx";
  std::string dilation;
  std::vector<std::string> workers;
  double seconds = 38;
  std::string json;
};

// An example with a number of workers (empty: as the runtime chooses).
struct Case {
  const CopyExample* example;
  std::string workers;

  bool operator==(const Case&) const = default;
  std::string name() const {
    return workers.empty() ? example->name : fmt::format("{}, {} workers", example->name, workers);
  }
};

// One cell of the tables.
struct Row {
  Case what;
  const CopyPolicy* policy;
  std::vector<CopyRun> runs;

  double median(double CopyRun::*figure) const {
    std::vector<double> values;
    for (const CopyRun& run : runs) values.push_back(run.*figure);
    return summarize(values).median;
  }
};

// Those of `all` that were asked for by name, in their own order; all if none was.
template <typename Thing>
Result<std::vector<const Thing*>> choose(const std::vector<Thing>& all,
                                         const std::vector<std::string>& names, const char* what) {
  std::vector<std::string> known;
  for (const Thing& one : all) known.push_back(one.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return usage_error(fmt::format("there is no {} '{}'{}", what, name, did_you_mean(name, known)));
  }
  std::vector<const Thing*> out;
  for (const Thing& one : all) {
    const bool wanted =
        names.empty() || std::find(names.begin(), names.end(), one.name) != names.end();
    if (wanted) out.push_back(&one);
  }
  return out;
}

Result<std::vector<Row>> plan(const Flags& flags) {
  const auto examples = choose(copy_examples(), flags.examples, "example");
  if (!examples) return examples.error();
  const auto policies = choose(copy_policies(), flags.policies, "policy");
  if (!policies) return policies.error();
  const auto workers = flags.workers.empty() ? std::vector<std::string>{""} : flags.workers;
  std::vector<Row> rows;
  for (const CopyExample* example : *examples) {
    for (const std::string& count : workers) {
      for (const CopyPolicy* policy : *policies) rows.push_back({{example, count}, policy, {}});
    }
  }
  return rows;
}

// The same bytes, whatever happened to them on their way.
Status check_hash(const std::vector<Row>& rows, const Row& row) {
  for (const Row& other : rows) {
    if (other.what.example != row.what.example || other.runs.empty()) continue;
    if (other.runs.front().hash == row.runs.back().hash) return {};
    return internal_error(fmt::format("{} computed something else under {} than under {}",
                                      row.what.name(), row.policy->name, other.policy->name));
  }
  return {};
}

// All policies of one case after another, so that they meet the same machine.
Status run_round(std::vector<Row>& rows, const CopySetting& setting, SeededRandom& random,
                 const std::function<void(const Row&)>& show) {
  std::vector<Row*> order;
  for (Row& row : rows) order.push_back(&row);
  for (auto begin = order.begin(); begin != order.end();) {
    const auto end = std::find_if(begin, order.end(),
                                  [&](const Row* row) { return row->what != (*begin)->what; });
    for (auto at = end; at - begin > 1; --at) {
      std::swap(*(at - 1),
                *(begin + static_cast<ptrdiff_t>(random.below(static_cast<uint64_t>(at - begin)))));
    }
    for (; begin != end; ++begin) {
      Row& row = **begin;
      show(row);
      CopySetting here = setting;
      here.workers = row.what.workers;
      auto run = run_copy_example(*row.what.example, *row.policy, here);
      if (!run) return run.error();
      row.runs.push_back(*std::move(run));
      if (Status same = check_hash(rows, row); !same) return same;
    }
  }
  return {};
}

Result<size_t> measure(std::vector<Row>& rows, const CopySetting& setting, double seconds) {
  const auto began = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - began).count(); };
  const Progress progress;
  SeededRandom random(1);
  size_t rounds = 0;
  // Another round only if it will be over in time.
  do {
    const Status done = run_round(rows, setting, random, [&](const Row& row) {
      progress.show(
          fmt::format("round {}: {} under {}", rounds + 1, row.what.name(), row.policy->name));
    });
    if (!done) return done.error();
    ++rounds;
  } while (elapsed() * static_cast<double>(rounds + 1) / static_cast<double>(rounds) < seconds);
  return rounds;
}

const Row* find_row(const std::vector<Row>& rows, const Case& what, std::string_view policy) {
  for (const Row& row : rows) {
    if (row.what == what && row.policy->name == policy) return &row;
  }
  return nullptr;
}

// "9.81", and behind it what is left of what stock CC costs over CC off.
std::string cell(const std::vector<Row>& rows, const Row& row, double CopyRun::*figure,
                 bool loss_left) {
  const double value = row.median(figure);
  std::string out = fmt::format("{:.2f}", value * 1e3);
  const Row* off = find_row(rows, row.what, "off");
  const Row* stock = find_row(rows, row.what, "stock");
  if (off == nullptr || stock == nullptr || !row.policy->ours()) return out;
  const double base = loss_left ? off->median(figure) : 0;
  const double loss = stock->median(figure) - base;
  return loss > 0 ? out + fmt::format(" ({:.2f})", (value - base) / loss) : out;
}

std::string table(const std::vector<Row>& rows, double CopyRun::*figure, bool loss_left) {
  std::vector<report::Table::Column> columns = {{"example", report::Align::left}};
  for (const Row& row : rows) {
    if (row.what == rows.front().what) columns.push_back({row.policy->name});
  }
  report::Table out(columns);
  std::vector<std::string> cells;
  for (const Row& row : rows) {
    if (cells.empty()) cells.push_back(row.what.name());
    cells.push_back(cell(rows, row, figure, loss_left));
    if (cells.size() < columns.size()) continue;
    out.add_row(std::move(cells));
    cells.clear();
  }
  return out.text();
}

// What the last switch buys, also where it buys nothing. Empty where it was not compared.
std::string speculation_table(const std::vector<Row>& rows) {
  report::Table out({{"example", report::Align::left},
                     {"parallel, ms"},
                     {"sealane, ms"},
                     {"faster by"},
                     {"foreseen"}});
  bool any = false;
  for (const Row& row : rows) {
    const Row* before = find_row(rows, row.what, "parallel");
    if (row.policy->name != "sealane" || before == nullptr) continue;
    const double with = row.median(&CopyRun::total_s);
    const double without = before->median(&CopyRun::total_s);
    out.add_row({row.what.name(), fmt::format("{:.2f}", without * 1e3),
                 fmt::format("{:.2f}", with * 1e3),
                 fmt::format("{:+.1f} %", (without - with) / without * 100),
                 fmt::format("{:.1f} %", row.median(&CopyRun::hit_rate) * 100)});
    any = true;
  }
  return any ? out.text() : "";
}

nlohmann::json to_json(const std::vector<Row>& rows, const Flags& flags, size_t rounds) {
  nlohmann::json out = {{"label", "MEASURED (emulated GPU)"},
                        {"time", "device time"},
                        {"platform", flags.platform},
                        {"rounds", rounds},
                        {"rows", nlohmann::json::array()}};
  for (const Row& row : rows) {
    out["rows"].push_back({{"example", row.what.example->name},
                           {"policy", row.policy->name},
                           {"total_s", row.median(&CopyRun::total_s)},
                           {"blocked_s", row.median(&CopyRun::blocked_s)},
                           {"hit_rate", row.median(&CopyRun::hit_rate)},
                           {"copies", row.runs.front().copies},
                           {"bytes", row.runs.front().bytes},
                           {"tokens_per_s", row.median(&CopyRun::tokens_per_s)}});
    if (!row.what.workers.empty()) out["rows"].back()["workers"] = row.what.workers;
  }
  return out;
}

Status bench_copy(const Flags& flags) {
  if (!flags.json.empty()) {
    if (Status status = report::check_writable(flags.json); !status) return status;
  }
  auto rows = plan(flags);
  if (!rows) return rows.error();
  std::string examples = flags.examples_dir;
  if (examples.empty()) {
    const auto found = directory_of("the examples", "layer_swap",
                                    {"examples", SEALANE_LIBDIR "/sealane/examples"});
    if (!found) return io_error(found.error().message + "; name them with --examples-dir");
    examples = *found;
  }
  const Scratch scratch;
  if (scratch.path().empty()) return io_error("cannot make a temporary directory");
  const auto rounds =
      measure(*rows, {examples, scratch.path(), flags.platform, flags.dilation, {}}, flags.seconds);
  if (!rounds) return rounds.error();

  if (flags.json != "-") {
    fmt::print("MEASURED on the emulated GPU, platform {}, device time, median of {} round{}\n\n",
               flags.platform, *rounds, *rounds == 1 ? "" : "s");
    fmt::print("End to end, ms; in brackets what is left of what stock CC mode costs\n{}\n",
               table(*rows, &CopyRun::total_s, true));
    fmt::print("Callers blocked in copies, ms; in brackets as a part of stock\n{}",
               table(*rows, &CopyRun::blocked_s, false));
    if (const std::string adds = speculation_table(*rows); !adds.empty()) {
      fmt::print("\nWhat sealing ahead adds to parallel, and how many swaps were foreseen\n{}",
                 adds);
    }
  }
  if (flags.json.empty()) return {};
  return report::write_json(flags.json, to_json(*rows, flags, *rounds));
}

}  // namespace

void add_bench_copy(CLI::App& bench, Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  auto* command =
      bench.add_subcommand("copy", "The examples on the emulated GPU, policy by policy");
  command->add_option("--examples", flags->examples, "Which, comma-separated [all]")
      ->delimiter(',')
      ->type_name("NAME,...");
  command->add_option("--policies", flags->policies, "Which, comma-separated [all]")
      ->delimiter(',')
      ->type_name("NAME,...");
  command->add_option("--platform", flags->platform, "The modelled machine [h100-tdx]")
      ->type_name("P");
  command
      ->add_option("--dilation", flags->dilation,
                   "A modelled second takes K real ones [40 / cores; vllm 100]")
      ->type_name("K")
      ->check(whole_number(1, 10000));
  command
      ->add_option("--workers", flags->workers,
                   "Threads that seal and open; several, comma-separated, to compare")
      ->delimiter(',')
      ->type_name("N,...")
      ->check(whole_number(1, 1024));
  command->add_option("--seconds", flags->seconds, "Whole rounds for about so long [38]")
      ->type_name("S")
      ->check(CLI::Range(0.0, 3600.0));
  command->add_option("--examples-dir", flags->examples_dir, "Where the examples are [beside us]")
      ->type_name("DIR");
  command->add_option("--json", flags->json, "Write results for programs; - is stdout, no table")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  sealane bench copy --json copy.json\n"
      "  sealane bench copy --examples layer_swap,kv_swap --policies off,stock,parallel\n"
      "  sealane bench copy --workers 2,4,8 --policies off,stock,parallel,sealane\n"
      "\n"
      "Times are device time on the emulated GPU; docs/watching.md has the details.");
  command->callback(
      [flags, &invocation] { invocation.job = [flags] { return bench_copy(*flags); }; });
}

}  // namespace sealane::cli
