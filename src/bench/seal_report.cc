// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/seal_report.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "base/byte_count.h"
#include "base/check.h"
#include "base/figures.h"
#include "report/table.h"
#include "sealane_version.h"

namespace sealane::bench {
namespace {

// The one figure people quote is for records of this size, from memory.
constexpr double kReferenceBytes = 64_KiB;

const char* title(Where where) { return where == Where::l2 ? "L2" : "DRAM"; }

// The trial at this place whose records are nearest to the reference size, if there is one.
const TrialResult* reference_trial(const SealReport& report, Where where) {
  const auto distance = [](const TrialResult& trial) {
    return std::abs(std::log2(static_cast<double>(trial.record_bytes) / kReferenceBytes));
  };
  const TrialResult* nearest = nullptr;
  for (const TrialResult& trial : report.trials) {
    if (trial.where != where) continue;
    if (nearest == nullptr || distance(trial) < distance(*nearest)) nearest = &trial;
  }
  return nearest;
}

const TrialResult& reference_trial(const SealReport& report) {
  const TrialResult* trial = reference_trial(report, Where::dram);
  return trial != nullptr ? *trial : *reference_trial(report, Where::l2);
}

const EngineResult& engine_of(const TrialResult& trial, const std::string& name) {
  const auto found = std::find_if(trial.engines.begin(), trial.engines.end(),
                                  [&](const EngineResult& e) { return e.engine == name; });
  SEALANE_CHECK(found != trial.engines.end(), "all trials have the same engines");
  return *found;
}

std::string rate_cell(const Summary& rate) { return fmt::format("{:.2f}", rate.median); }

// As wide as its column, however busy the machine was.
std::string spread_cell(const Summary& rate) {
  return rate.spread_pct < 999.5 ? fmt::format("{:.0f} %", rate.spread_pct) : ">999%";
}

// A column that would say 1.00 in every row is left out.
bool compares_with_openssl(const SealReport& report) {
  return report.in_use != "openssl" &&
         engine_of(report.trials.front(), report.in_use).seal.vs_openssl.has_value();
}

report::Table make_table(const SealReport& report) {
  using report::Align;
  std::vector<report::Table::Column> columns = {{"op", Align::left},
                                                {"from", Align::left},
                                                {"record", Align::right},
                                                {"memcpy", Align::right}};
  for (const EngineResult& engine : report.trials.front().engines) {
    columns.push_back({engine.engine, Align::right});
  }
  columns.push_back({"IQR", Align::right});
  if (compares_with_openssl(report)) columns.push_back({"/openssl", Align::right});
  columns.push_back({"/memcpy", Align::right});  // the first to go where a terminal is narrow
  return report::Table(std::move(columns));
}

void add_trial_row(report::Table& table, const TrialResult& trial, OpResult EngineResult::*op,
                   const std::string& in_use, bool with_openssl) {
  std::vector<std::string> cells = {op == &EngineResult::seal ? "seal" : "open", title(trial.where),
                                    format_byte_count(trial.record_bytes),
                                    rate_cell(trial.memcpy_gb_s)};
  for (const EngineResult& engine : trial.engines) {
    cells.push_back(rate_cell((engine.*op).rate_gb_s));
  }
  const OpResult& result = engine_of(trial, in_use).*op;
  cells.push_back(spread_cell(result.rate_gb_s));
  if (with_openssl) cells.push_back(fmt::format("{:.2f}", result.vs_openssl->median));
  cells.push_back(fmt::format("{:.2f}", result.vs_memcpy.median));
  table.add_row(std::move(cells));
}

std::string legend(const SealReport& report, bool with_openssl) {
  const auto fewest = std::min_element(
      report.trials.begin(), report.trials.end(),
      [](const TrialResult& a, const TrialResult& b) { return a.rounds < b.rounds; });
  std::string text = fmt::format(
      "Payload on one core: median of at least {} short slices, all interleaved.\n"
      "{}/memcpy: speed of {}, the engine {}, over theirs,\n"
      "within each round; IQR: interquartile range of its speed.\n",
      fewest->rounds, with_openssl ? "/openssl, " : "", report.in_use,
      report.usual ? "in use" : "asked for");
  for (const auto& [engine, version] : report.versions) {
    text += wrapped(fmt::format("{}: {}{}", engine, version,
                                engine != "openssl"
                                    ? ""
                                    : ", plain EVP as a driver calls it, without the private copy "
                                      "that Sealane's own openssl engine makes for safety"),
                    0);
  }
  for (const std::string& note : report.notes) text += wrapped(note, 0);
  return text + "The key is random and the IVs count: both serve this benchmark only.\n";
}

std::string in_plain_words(const SealReport& report) {
  const TrialResult& trial = reference_trial(report);
  const EngineResult& best = engine_of(trial, report.in_use);
  std::string text = fmt::format(
      "In plain words: to seal a record of {} from {}, {} needs {:.2f} times the time of a "
      "plain copy",
      format_byte_count(trial.record_bytes), title(trial.where), best.engine,
      1 / best.seal.vs_memcpy.median);
  if (best.engine != "openssl" && best.seal.vs_openssl) {
    const EngineResult& openssl = engine_of(trial, "openssl");
    text += fmt::format(
        ", and OpenSSL {:.2f} times. Changing the engine alone makes sealing {:.2f} times as "
        "fast",
        1 / openssl.seal.vs_memcpy.median, best.seal.vs_openssl->median);
  }
  text = wrapped(text + ".", 0);
  return report.cpu.empty() ? text
                            : text + wrapped(fmt::format("{}", fmt::join(report.cpu, " ")), 0);
}

// To three digits behind the point; of less than a tenth three digits, for however small a rate is,
// it is not zero.
double rounded(double value) {
  if (std::abs(value) >= 0.1) return std::round(value * 1000) / 1000;
  return std::stod(fmt::format("{:.3g}", value));
}

nlohmann::json number_or_null(const std::optional<Summary>& value) {
  if (!value) return nullptr;
  return rounded(value->median);
}

nlohmann::json result_json(const TrialResult& trial, const char* who, const std::string& name,
                           const OpResult& result) {
  return {{who, name},
          {"where", to_string(trial.where)},
          {"record_bytes", trial.record_bytes},
          {"gb_s", rounded(result.rate_gb_s.median)},
          {"vs_memcpy", rounded(result.vs_memcpy.median)},
          {"spread_pct", rounded(result.rate_gb_s.spread_pct)}};
}

nlohmann::json engine_json(const TrialResult& trial, const EngineResult& engine, const char* op,
                           const OpResult& result) {
  nlohmann::json json = result_json(trial, "engine", engine.engine, result);
  json["op"] = op;
  json["vs_openssl"] = number_or_null(result.vs_openssl);
  return json;
}

nlohmann::json best_json(const SealReport& report, const TrialResult* trial) {
  if (trial == nullptr) return nullptr;
  const EngineResult& best = engine_of(*trial, report.in_use);
  return {{"engine", best.engine},
          {"op", "seal"},
          {"where", to_string(trial->where)},
          {"record_bytes", trial->record_bytes},
          {"vs_openssl", number_or_null(best.seal.vs_openssl)},
          {"vs_memcpy", rounded(best.seal.vs_memcpy.median)}};
}

}  // namespace

std::string seal_table(const SealReport& report) {
  const bool with_openssl = compares_with_openssl(report);
  report::Table table = make_table(report);
  bool first_group = true;
  for (const Where where : {Where::dram, Where::l2}) {
    if (reference_trial(report, where) == nullptr) continue;
    for (const auto op : {&EngineResult::seal, &EngineResult::open}) {
      if (!first_group) table.add_rule();
      first_group = false;
      for (const TrialResult& trial : report.trials) {
        if (trial.where == where) add_trial_row(table, trial, op, report.in_use, with_openssl);
      }
    }
  }
  return fmt::format("MEASURED on this machine: AES-256-GCM records, GB/s\n\n{}\n{}\n{}",
                     table.text(), legend(report, with_openssl), in_plain_words(report));
}

nlohmann::json seal_json(const SealReport& report) {
  nlohmann::json json = {{"label", "MEASURED"}, {"sealane", SEALANE_VERSION}};
  for (const auto& [engine, version] : report.versions) json["versions"][engine] = version;
  for (const Where where : {Where::l2, Where::dram}) {
    const TrialResult* trial = reference_trial(report, where);
    auto& memcpy_rate = json["memcpy_gb_s"][to_string(where)];
    auto& stream_copy_rate = json["nt_copy_gb_s"][to_string(where)];
    if (trial == nullptr) continue;  // stays null
    memcpy_rate = rounded(trial->memcpy_gb_s.median);
    stream_copy_rate = rounded(trial->stream_copy.rate_gb_s.median);
  }
  json["cpu"] = report.cpu;
  json["results"] = nlohmann::json::array();
  json["copies"] = nlohmann::json::array();
  for (const TrialResult& trial : report.trials) {
    for (const EngineResult& engine : trial.engines) {
      json["results"].push_back(engine_json(trial, engine, "seal", engine.seal));
      json["results"].push_back(engine_json(trial, engine, "open", engine.open));
    }
    const OpResult plain{trial.memcpy_gb_s, {1, 0}, std::nullopt};
    json["copies"].push_back(result_json(trial, "copy", "memcpy", plain));
    json["copies"].push_back(result_json(trial, "copy", "non-temporal", trial.stream_copy));
  }
  json["best"] = best_json(report, &reference_trial(report));
  json["best_l2"] = best_json(report, reference_trial(report, Where::l2));
  return json;
}

}  // namespace sealane::bench
