// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/estimate_report.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "estimate/timeline.h"
#include "platform/reader.h"
#include "report/table.h"
#include "workload/model.h"
#include "workload/serving/serving.h"
#include "workload/training.h"

namespace sealane::cli {
namespace {

using nlohmann::json;
using report::Align;
using report::Table;

constexpr Duration kTimelineWindow{200'000'000};

std::string percent(double value) { return fmt::format("{:.1f} %", value); }

std::string headline(const EstimateSubject& subject, const Platform& platform) {
  return fmt::format("SIMULATED: {}{}{} on {}, at most {} sealing {}\n  {}\n\n", subject.workload,
                     subject.model.empty() ? "" : " ", subject.model, platform.name,
                     subject.workers, subject.workers == 1 ? "core" : "cores",
                     platform.description);
}

json header_json(const EstimateSubject& subject, const Platform& platform) {
  json result{{"kind", "estimate"},
              {"evidence", "SIMULATED"},
              {"workload", subject.workload},
              {"platform", platform.name},
              {"platform_description", platform.description},
              {"workers", subject.workers},
              {"seed", subject.seed}};
  if (!subject.model.empty()) result["model"] = subject.model;
  if (subject.model_bytes > 0) result["model_bytes"] = subject.model_bytes;
  result["options"] = json::object();
  for (const auto& [name, value] : subject.options) result["options"][name] = value;
  json parameters = json::array();
  for (const Parameter& each : platform.parameters) {
    parameters.push_back({{"key", each.key}, {"value", each.value}, {"source", each.source}});
  }
  result["parameters"] = std::move(parameters);
  return result;
}

json timeline_json(const std::vector<sim::Span>& timeline) {
  json bars = json::array();
  for (const estimate::Bar& bar : estimate::last_bars(timeline, kTimelineWindow)) {
    bars.push_back({bar.track, bar.what, std::round(bar.from_ms * 1e3) / 1e3,
                    std::round(bar.until_ms * 1e3) / 1e3});
  }
  return bars;
}

json ddp_row_json(const estimate::DdpRow& row, double samples) {
  return {{"time_s", row.time_s},     {"throughput", samples / row.time_s},
          {"unit", "samples/s"},      {"loss_pct", row.loss_pct},
          {"slowdown", row.slowdown}, {"hit_rate", 0.0},
          {"messages", row.messages}, {"sealed_bytes", row.sealed_bytes},
          {"buckets", row.buckets},   {"compute_s", row.compute_s},
          {"wire_s", row.wire_s},     {"seal_s", row.seal_s},
          {"verify_s", row.verify_s}, {"wait_s", row.wait_s}};
}

}  // namespace

std::string serving_text(const EstimateSubject& subject, const Platform& platform,
                         std::span<const estimate::ServingRow> rows) {
  const bool timed = subject.unit.empty();
  bool latencies = false;
  for (const auto& row : rows) latencies = latencies || row.latency_p50_ms.has_value();
  std::vector<Table::Column> columns{{"policy", Align::left},
                                     {timed ? "time" : subject.unit},
                                     {timed ? "slowdown" : "loss"},
                                     {"hit rate"},
                                     {"sealed GB"},
                                     {"cores busy"}};
  if (latencies) columns.insert(columns.end(), {{"p50 ms"}, {"p99 ms"}});
  Table table(columns);
  for (const auto& row : rows) {
    std::vector<std::string> cells{
        row.policy,
        timed ? fmt::format("{:.3f} s", row.time_s) : fmt::format("{:.2f}", row.throughput),
        timed ? fmt::format("{:.2f}x", row.slowdown) : percent(row.loss_pct),
        row.hit_rate > 0 ? percent(100 * row.hit_rate) : "-",
        row.sealed_bytes > 0 ? fmt::format("{:.2f}", static_cast<double>(row.sealed_bytes) / 1e9)
                             : "-",
        row.worker_cores > 0 ? fmt::format("{:.1f}", row.worker_cores) : "-"};
    if (latencies) {
      for (const auto& each : {row.latency_p50_ms, row.latency_p99_ms}) {
        cells.push_back(each ? fmt::format("{:.1f}", *each) : "-");
      }
    }
    table.add_row(cells);
  }
  return headline(subject, platform) + table.text();
}

json serving_json(const EstimateSubject& subject, const Platform& platform,
                  std::span<const estimate::ServingRow> rows) {
  json result = header_json(subject, platform);
  json& policies = result["policies"] = json::object();
  json order = json::array();
  for (const auto& row : rows) {
    order.push_back(row.policy);
    json& to = policies[row.policy];
    to = {{"time_s", row.time_s},
          {"throughput", row.throughput},
          {"unit", subject.unit},
          {"loss_pct", row.loss_pct},
          {"slowdown", row.slowdown},
          {"hit_rate", row.hit_rate},
          {"messages", row.messages},
          {"sealed_bytes", row.sealed_bytes},
          {"worker_cores", row.worker_cores}};
    if (row.latency_p50_ms) to["latency_p50_ms"] = *row.latency_p50_ms;
    if (row.latency_p99_ms) to["latency_p99_ms"] = *row.latency_p99_ms;
    if (!row.timeline.empty()) to["timeline"] = timeline_json(row.timeline);
  }
  result["policy_order"] = std::move(order);
  return result;
}

std::string ddp_text(const EstimateSubject& subject, const Platform& platform,
                     const estimate::DdpOptions& options, std::span<const estimate::DdpRow> rows,
                     std::optional<double> needed_rate) {
  const estimate::SealRate rate = estimate::default_seal_rate(platform, options.sealer);
  std::string text =
      fmt::format("SIMULATED: ddp {} on {} x {}, link {}\n  {}\n", subject.model, options.gpus,
                  platform.name, to_string(options.link), platform.description);
  const std::string who = options.sealer == estimate::Sealer::cpu
                              ? fmt::format("{} cores per machine", options.workers)
                              : fmt::format("a {} per GPU", to_string(options.sealer));
  if (options.seal_gb_per_s > 0) {
    text +=
        fmt::format("  sealane seals by {} at {} GB/s each (given)\n", who, options.seal_gb_per_s);
  } else {
    text += fmt::format("  sealane seals by {} at {} GB/s each ({})\n", who, rate.gb_per_s,
                        rate.source);
  }
  text += needed_rate ? fmt::format("  for {}x of 'off' each would need {:.2f} GB/s\n\n", kDdpGoal,
                                    *needed_rate)
                      : fmt::format(
                            "  {}x of 'off' is out of reach at any sealing rate: the links "
                            "are the limit\n\n",
                            kDdpGoal);
  Table table({{"policy", Align::left},
               {"iteration"},
               {"slowdown"},
               {"buckets"},
               {"sealed messages"},
               {"sealed GB"},
               {"compute"},
               {"wire"},
               {"seal"},
               {"verify"},
               {"wait"}});
  for (const auto& row : rows) {
    const auto seconds = [](double value) { return fmt::format("{:.3f} s", value); };
    table.add_row({row.policy, seconds(row.time_s), fmt::format("{:.2f}x", row.slowdown),
                   fmt::format("{}", row.buckets), fmt::format("{}", row.messages),
                   fmt::format("{:.2f}", static_cast<double>(row.sealed_bytes) / 1e9),
                   seconds(row.compute_s), seconds(row.wire_s), seconds(row.seal_s),
                   seconds(row.verify_s), seconds(row.wait_s)});
  }
  return text + table.text() +
         "Messages, GB and times are of one GPU and iteration; wire, seal and verify overlap with\n"
         "compute and each other, wait is what is left. 'study' is calibrated on its 41.6x.\n";
}

json ddp_json(const EstimateSubject& subject, const Platform& platform,
              const estimate::DdpOptions& options, uint64_t batch,
              std::span<const estimate::DdpRow> rows, std::optional<double> needed_rate,
              std::span<const DdpScale> scaling) {
  json result = header_json(subject, platform);
  result["gpus"] = options.gpus;
  result["link"] = to_string(options.link);
  result["sealer"] = to_string(options.sealer);
  const estimate::SealRate rate = estimate::default_seal_rate(platform, options.sealer);
  const bool given = options.seal_gb_per_s > 0;
  result["seal_gb_per_s"] = given ? options.seal_gb_per_s : rate.gb_per_s;
  result["seal_source"] = given ? "given" : rate.source;
  result["workers"] = options.workers;
  if (needed_rate) result["needed_seal_gb_per_s"] = *needed_rate;
  json order = json::array();
  json& policies = result["policies"] = json::object();
  for (const auto& row : rows) {
    order.push_back(row.policy);
    policies[row.policy] = ddp_row_json(row, static_cast<double>(batch * options.gpus));
  }
  result["policy_order"] = std::move(order);
  json& curve = result["scaling"] = json::array();
  for (const DdpScale& scale : scaling) {
    json point{{"gpus", scale.gpus}};
    for (const auto& row : scale.rows) point[row.policy] = row.slowdown;
    curve.push_back(std::move(point));
  }
  return result;
}

std::string list_text() {
  std::string text = "Platforms (--platform)\n";
  for (const std::string& name : platform_names()) {
    const auto platform = find_platform(name);
    text += fmt::format("  {:<16}{}\n", name,
                        platform ? platform->description : platform.error().message);
  }
  text +=
      fmt::format("  {:<16}this machine's rates, measured first; the GPU of h100-tdx\n", "local");
  text += "\nWorkloads (--workload)\n";
  for (const workload::Serving& each : workload::servings()) {
    text += fmt::format("  {:<16}{} [{}]\n", each.name, each.what, each.model);
  }
  text += fmt::format("  {:<16}data-parallel training [gpt2-xl]\n", "ddp");
  text += "\nModels (--model)\n";
  for (const workload::Model& model : workload::models()) {
    text += fmt::format("  {:<16}{:.1f} GB, {} layers, {:.2f} MB of KV per token\n", model.name,
                        static_cast<double>(model.bytes()) / 1e9, model.layers,
                        static_cast<double>(model.kv_bytes_per_token()) / 1e6);
  }
  text += "\nModels of ddp\n";
  for (const workload::TrainingModel& model : workload::training_models()) {
    text += fmt::format("  {:<16}{}, {:.2f} GB of gradients, {} buckets of 25 MiB\n", model.name,
                        model.what, static_cast<double>(model.gradient_bytes()) / 1e9,
                        gradient_buckets(model, workload::kBucketBytesDefault).size());
  }
  text += "\nPolicies (--policy)\n  ";
  for (const Policy& policy : estimate::serving_policies()) text += fmt::format("{} ", policy.name);
  text += "\n  ddp: ";
  for (const std::string_view policy : estimate::ddp_policies()) text += fmt::format("{} ", policy);
  return text + "\n";
}

}  // namespace sealane::cli
