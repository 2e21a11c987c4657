// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/estimate_report.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "base/figures.h"
#include "base/text.h"
#include "estimate/timeline.h"
#include "platform/reader.h"
#include "platform/spread.h"
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
constexpr std::string_view kLocal = "local";
constexpr std::string_view kLocalWords =
    "this machine's rates, measured first; the GPU of h100-tdx";
constexpr std::string_view kDdpWords = "data-parallel training";
constexpr std::string_view kDdpModel = "gpt2-xl";

std::string percent(double value) { return fmt::format("{:.1f} %", value); }

// A policy that beats a machine without CC mode needs a word.
std::string below_nothing(std::span<const estimate::ServingRow> rows) {
  constexpr double kNoisePct = -2;
  std::string names;
  for (const auto& row : rows) {
    if (row.loss_pct < kNoisePct) names += (names.empty() ? "'" : "', '") + row.policy;
  }
  if (names.empty()) return {};
  return wrapped(
      names +
          "' lose less than nothing: several cores stage pageable memory there, which one core "
          "does without CC mode. It is Sealane's cores that are faster, not CC mode: a program "
          "that stages with several threads has the same gain without it.",
      0);
}

std::string headline(const EstimateSubject& subject, const Platform& platform) {
  const std::string what =
      fmt::format("SIMULATED: {}{}{} on {}, at most {} sealing {}", visible(subject.workload),
                  subject.model.empty() ? "" : " ", subject.model, visible(platform.name),
                  subject.workers, subject.workers == 1 ? "core" : "cores");
  return wrapped(what, 0) + "  " + wrapped(visible(platform.description), 2) + "\n";
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
    parameters.push_back({{"key", each.key},
                          {"value", each.value},
                          {"source", each.source},
                          {"kind", to_string(each.kind)},
                          {"spread", each.spread}});
  }
  result["parameters"] = std::move(parameters);
  return result;
}

// No more digits than say something.
std::string figure(double value, int digits) {
  return fmt::format("{:.{}f}", value, value >= 100 ? 0 : digits);
}

// "9.8-12.1"
std::string range_text(const estimate::Interval& range, int digits) {
  if (!range.known()) return "-";
  return figure(range.low, digits) + "-" + figure(range.high, digits);
}

// What is out of reach at any rate or number is null.
json range_json(const estimate::Interval& range) {
  const auto end = [](double value) { return std::isinf(value) ? json() : json(value); };
  return json::array({end(range.low), end(range.high)});
}

constexpr const char* kRangeNote =
    "80 %: where it lies four times out of five, if the platform's numbers are off as\n"
    "far as their sources allow; not what the model leaves out (docs/estimate.md).\n";

json timeline_json(const std::vector<sim::Span>& timeline) {
  json bars = json::array();
  for (const estimate::Bar& bar : estimate::last_bars(timeline, kTimelineWindow)) {
    bars.push_back({bar.track, bar.what, std::round(bar.from_ms * 1e3) / 1e3,
                    std::round(bar.until_ms * 1e3) / 1e3});
  }
  return bars;
}

json ddp_row_json(const estimate::DdpRow& row, double samples) {
  json to{{"time_s", row.time_s},     {"throughput", samples / row.time_s},
          {"unit", "samples/s"},      {"loss_pct", row.loss_pct},
          {"slowdown", row.slowdown}, {"hit_rate", 0.0},
          {"messages", row.messages}, {"sealed_bytes", row.sealed_bytes},
          {"buckets", row.buckets},   {"compute_s", row.compute_s},
          {"wire_s", row.wire_s},     {"seal_s", row.seal_s},
          {"verify_s", row.verify_s}, {"wait_s", row.wait_s}};
  if (row.slowdown_range.known()) {
    to["time_s_80"] = range_json(row.time_range);
    to["slowdown_80"] = range_json(row.slowdown_range);
    to["loss_pct_80"] = range_json(row.loss_range);
  }
  return to;
}

// Where each loss goes, once it is one.
std::string parts_text(std::span<const estimate::ServingRow> rows) {
  Table table({{"of the loss, points", Align::left}, {"launches"}, {"copies"}, {"waiting"}});
  bool any = false;
  for (const auto& row : rows) {
    if (!row.parts || row.policy == "off") continue;
    any = true;
    std::vector<std::string> cells{row.policy};
    for (const double points : {row.parts->launches, row.parts->copies, row.parts->waiting}) {
      cells.push_back(fmt::format("{:.1f}", std::abs(points) < 0.05 ? 0 : points));  // no "-0.0"
    }
    table.add_row(std::move(cells));
  }
  if (!any) return {};
  return "\n" + table.text() +
         wrapped(
             "Launches: what CC adds to launches, other calls and kernels, which no policy takes "
             "away. Copies: sealing and tolls. Waiting: what is lost even if both cost nothing, "
             "because callers block and copies take turns.",
             0);
}

std::string serving_text(const EstimateSubject& subject, const Platform& platform,
                         std::span<const estimate::ServingRow> rows) {
  const bool timed = subject.unit.empty();
  bool latencies = false;
  bool ranges = false;
  for (const auto& row : rows) {
    latencies = latencies || row.latency_p50_ms.has_value();
    ranges = ranges || row.slowdown_range.known();
  }
  std::vector<Table::Column> columns{
      {"policy", Align::left}, {timed ? "time" : subject.unit}, {timed ? "slowdown" : "loss"}};
  if (ranges) columns.emplace_back(Table::Column{"80 %"});
  columns.emplace_back(Table::Column{"hit rate"});
  if (!latencies) columns.emplace_back(Table::Column{"sealed GB"});
  columns.emplace_back(Table::Column{"cores busy"});
  if (latencies) columns.insert(columns.end(), {{"p50 ms"}, {"p99 ms"}});
  Table table(columns);
  for (const auto& row : rows) {
    std::vector<std::string> cells{
        row.policy,
        timed ? fmt::format("{:.3f} s", row.time_s) : fmt::format("{:.2f}", row.throughput),
        timed ? fmt::format("{:.2f}x", row.slowdown) : percent(row.loss_pct)};
    const bool itself = row.policy == "off";
    if (ranges) {
      cells.push_back(
          itself ? "-"
                 : (timed ? range_text(row.slowdown_range, 2) : range_text(row.loss_range, 1)));
    }
    cells.push_back(row.hit_rate > 0 ? percent(100 * row.hit_rate) : "-");
    if (!latencies) {
      cells.push_back(row.sealed_bytes > 0
                          ? fmt::format("{:.2f}", static_cast<double>(row.sealed_bytes) / 1e9)
                          : "-");
    }
    cells.push_back(row.worker_cores > 0 ? fmt::format("{:.1f}", row.worker_cores) : "-");
    if (latencies) {
      for (const auto& each : {row.latency_p50_ms, row.latency_p99_ms}) {
        cells.push_back(each ? fmt::format("{:.1f}", *each) : "-");
      }
    }
    table.add_row(cells);
  }
  return headline(subject, platform) + table.text() + (ranges ? kRangeNote : "") +
         below_nothing(rows) + parts_text(rows);
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
    if (row.slowdown_range.known()) {
      to["time_s_80"] = range_json(row.time_range);
      to["throughput_80"] = range_json(row.throughput_range);
      to["loss_pct_80"] = range_json(row.loss_range);
      to["slowdown_80"] = range_json(row.slowdown_range);
    }
    if (row.latency_p50_ms) to["latency_p50_ms"] = *row.latency_p50_ms;
    if (row.latency_p99_ms) to["latency_p99_ms"] = *row.latency_p99_ms;
    if (row.parts) {
      to["loss_parts"] = {{"launches", row.parts->launches},
                          {"copies", row.parts->copies},
                          {"waiting", row.parts->waiting}};
    }
    if (!row.timeline.empty()) to["timeline"] = timeline_json(row.timeline);
  }
  result["policy_order"] = std::move(order);
  return result;
}

std::string ddp_table(std::span<const estimate::DdpRow> rows) {
  Table table({{"policy", Align::left},
               {"total s"},
               {"of off"},
               {"80 %"},
               {"compute"},
               {"wire"},
               {"seal"},
               {"verify"},
               {"wait"}});
  for (const auto& row : rows) {
    const auto seconds = [](double value) { return figure(value, 2); };
    table.add_row({row.policy, figure(row.time_s, 3), figure(row.slowdown, 2) + "x",
                   row.policy == "off" ? "-" : range_text(row.slowdown_range, 2),
                   seconds(row.compute_s), seconds(row.wire_s), seconds(row.seal_s),
                   seconds(row.verify_s), seconds(row.wait_s)});
  }
  return table.text();
}

// Next to what is needed: how far that may be off.
std::string needed_range_text(const estimate::Interval& range, int digits) {
  if (!range.known()) return {};
  if (std::isinf(range.low)) return " (80 %: out of reach)";
  if (std::isinf(range.high)) {
    return fmt::format(" (80 %: {:.{}f} to out of reach)", range.low, digits);
  }
  return fmt::format(" (80 %: {})", range_text(range, digits));
}

// Times of `off`, by the number of machines.
std::string scale_table(const DdpEstimate& estimate) {
  const auto& [subject, platform, options, batch, rows, needs, scaling] = estimate;
  std::vector<Table::Column> columns{{"machines"}};
  for (const auto& row : rows) {
    if (row.policy != "off") columns.push_back({row.policy + (options.draws > 0 ? ", 80 %" : "")});
  }
  Table table(columns);
  for (const DdpScale& scale : scaling) {
    std::vector<std::string> cells{fmt::format("{}", scale.gpus / options.gpus_per_machine)};
    for (const auto& row : scale.rows) {
      if (row.policy == "off") continue;
      cells.push_back(figure(row.slowdown, 2));
      if (options.draws > 0) cells.back() += " " + range_text(row.slowdown_range, 2);
    }
    table.add_row(cells);
  }
  return table.text();
}

std::string seal_rate_text(const Platform& platform, const estimate::DdpOptions& options) {
  const estimate::SealRate rate = estimate::default_seal_rate(platform, options.sealer);
  const std::string who =
      options.sealer == estimate::Sealer::cpu
          ? fmt::format("{} core{} per machine", options.workers, options.workers == 1 ? "" : "s")
          : fmt::format("a {} per GPU", to_string(options.sealer));
  const bool given = options.seal_gb_per_s > 0;
  return wrapped(fmt::format("sealane seals by {} at {:.4g} GB/s each ({})", who,
                             given ? options.seal_gb_per_s : rate.gb_per_s,
                             given ? "given" : visible(rate.source)),
                 2);
}

std::string mebibytes(uint64_t bytes) {
  return fmt::format("{:.4g}", static_cast<double>(bytes) / (1 << 20));
}

// What to buy, and what to set: in a sentence.
std::string nccl_needs_text(const estimate::DdpOptions& options, const DdpNeeds& needs) {
  if (!needs.bucket) {
    return fmt::format(
        "{}x of 'off' is out of reach with any number of cores and buckets of up to "
        "1 GiB",
        kDdpGoal);
  }
  const auto enough = [](uint32_t workers) {
    return workers == 1 ? std::string("1 core per machine is enough")
                        : fmt::format("{} cores per machine are enough", workers);
  };
  const std::string range = needed_range_text(needs.workers_range, 0);
  if (needs.bucket->bytes == options.bucket_bytes) {
    return fmt::format("{} for {}x of 'off'{}", enough(needs.bucket->workers), kDdpGoal, range);
  }
  const std::string asked = mebibytes(options.bucket_bytes);
  const std::string best = mebibytes(needs.bucket->bytes);
  return fmt::format(
      "{} for {}x of 'off' with buckets of {} MiB (--bucket {}M --workers {}); with buckets of {} "
      "MiB {}{}",
      enough(needs.bucket->workers), kDdpGoal, best, best, needs.bucket->workers, asked,
      needs.workers ? fmt::format("it takes {}", *needs.workers) : "no number of them is", range);
}

std::string ddp_text(const DdpEstimate& estimate) {
  const auto& [subject, platform, options, batch, rows, needs, scaling] = estimate;
  std::string text = fmt::format("SIMULATED: ddp {} on {} x {}, link {}\n  ", subject.model,
                                 options.gpus, visible(platform.name), to_string(options.link));
  text += wrapped(visible(platform.description), 2) + "  ";
  text += seal_rate_text(platform, options);
  text += needs.seal_rate
              ? fmt::format("  for {}x of 'off' each would need {:.2f} GB/s", kDdpGoal,
                            *needs.seal_rate)
              : fmt::format("  {}x of 'off' is out of reach at any sealing rate: the links are",
                            kDdpGoal);
  if (!needs.seal_rate) text += "\n  the limit";
  text += needed_range_text(needs.seal_rate_range, 2) + "\n\n";
  return text + ddp_table(rows) +
         "Seconds of one GPU and iteration; wire, seal and verify overlap with compute and\n"
         "each other, wait is what is left. 'study' is calibrated on its 41.6x.\n" +
         (options.draws > 0 ? kRangeNote : "");
}

std::string nccl_text(const DdpEstimate& estimate) {
  const auto& [subject, platform, options, batch, rows, needs, scaling] = estimate;
  std::string text = fmt::format("SIMULATED: ddp {} over NCCL, {} machines of {} x {}\n  ",
                                 subject.model, options.gpus / options.gpus_per_machine,
                                 options.gpus_per_machine, visible(platform.name));
  text += wrapped(visible(platform.description), 2) + "  ";
  text += seal_rate_text(platform, options);
  text += "  " + wrapped(nccl_needs_text(options, needs), 2) + "\n";
  text += ddp_table(rows);
  text += "Seconds of one GPU and iteration.\n\n";
  text += scale_table(estimate);
  if (options.draws > 0) text += kRangeNote;
  return text +
         wrapped(
             fmt::format(
                 "Times of 'off': no confidential mode, RDMA from the GPUs. Only what leaves a "
                 "machine is sealed, 2 (m-1)/m of the gradients. Assumed: plain, tls and wireguard "
                 "cross to the host by the driver's copies and use NCCL's sockets, one polling "
                 "thread per GPU; tls seals in that thread, AES-128 in 16 KiB records, 1.2 times "
                 "the rate of the driver's library; wireguard carries {} GB/s each way between two "
                 "machines; sealane's cores seal for the network and carry the crossings. Threads "
                 "of the others are not counted.",
                 options.tunnel_gb_per_s),
             0);
}

json ddp_json(const DdpEstimate& estimate) {
  const auto& [subject, platform, options, batch, rows, needs, scaling] = estimate;
  json result = header_json(subject, platform);
  result["gpus"] = options.gpus;
  result["fabric"] = options.fabric == estimate::Fabric::nccl ? "nccl" : "sealane";
  result["link"] = to_string(options.link);
  result["sealer"] = to_string(options.sealer);
  const estimate::SealRate rate = estimate::default_seal_rate(platform, options.sealer);
  const bool given = options.seal_gb_per_s > 0;
  result["seal_gb_per_s"] = given ? options.seal_gb_per_s : rate.gb_per_s;
  result["seal_source"] = given ? "given" : rate.source;
  result["workers"] = options.workers;
  if (needs.seal_rate) result["needed_seal_gb_per_s"] = *needs.seal_rate;
  if (needs.workers) result["needed_workers"] = *needs.workers;
  if (needs.bucket) {
    result["least_workers"] = {{"workers", needs.bucket->workers},
                               {"bucket_bytes", needs.bucket->bytes}};
  }
  if (options.draws > 0) {
    result["needed_seal_gb_per_s_80"] = range_json(needs.seal_rate_range);
    result["needed_workers_80"] = range_json(needs.workers_range);
  }
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
    for (const auto& row : scale.rows) {
      point[row.policy] = row.slowdown;
      if (options.draws > 0) point["slowdown_80"][row.policy] = range_json(row.slowdown_range);
    }
    curve.push_back(std::move(point));
  }
  return result;
}

std::string entry(std::string_view name, const std::string& what) {
  return fmt::format("  {:<16}{}", name, wrapped(what, 18));
}

std::string list_text() {
  std::string text = "Platforms (--platform)\n";
  for (const std::string& name : platform_names()) {
    const auto platform = find_platform(name);
    text +=
        entry(visible(name), visible(platform ? platform->description : platform.error().message));
  }
  text += entry(kLocal, std::string(kLocalWords));
  text += "\nWorkloads (--workload)\n";
  for (const workload::Serving& each : workload::servings()) {
    text += entry(each.name, fmt::format("{} [{}]", each.what, each.model));
  }
  text += entry("ddp", fmt::format("{} [{}]", kDdpWords, kDdpModel));
  text += "\nModels (--model)\n";
  for (const workload::Model& model : workload::models()) {
    text += entry(model.name, fmt::format("{:.1f} GB, {} layers, {:.2f} MB of KV per token",
                                          static_cast<double>(model.bytes()) / 1e9, model.layers,
                                          static_cast<double>(model.kv_bytes_per_token()) / 1e6));
  }
  text += "\nModels of ddp\n";
  for (const workload::TrainingModel& model : workload::training_models()) {
    text += entry(model.name,
                  fmt::format("{}, {:.2f} GB of gradients, {} buckets of 25 MiB", model.what,
                              static_cast<double>(model.gradient_bytes()) / 1e9,
                              gradient_buckets(model, workload::kBucketBytesDefault).size()));
  }
  text += "\nPolicies (--policy)\n  ";
  for (const Policy& policy : estimate::serving_policies()) text += fmt::format("{} ", policy.name);
  text += "\n  ddp: ";
  for (const std::string_view policy : estimate::ddp_policies()) text += fmt::format("{} ", policy);
  text += "\n  ddp over nccl: ";
  for (const auto policy : estimate::ddp_policies(estimate::Fabric::nccl)) {
    text += fmt::format("{} ", policy);
  }
  return text + "\n";
}

json list_json() {
  json out{{"kind", "estimate-list"}};
  json& platforms = out["platforms"] = json::array();
  for (const std::string& name : platform_names()) {
    const auto platform = find_platform(name);
    platforms.push_back(platform ? json{{"name", name}, {"description", platform->description}}
                                 : json{{"name", name}, {"problem", platform.error().message}});
  }
  platforms.push_back({{"name", kLocal}, {"description", kLocalWords}});
  json& workloads = out["workloads"] = json::array();
  for (const workload::Serving& each : workload::servings()) {
    workloads.push_back({{"name", each.name}, {"what", each.what}, {"model", each.model}});
  }
  workloads.push_back({{"name", "ddp"}, {"what", kDdpWords}, {"model", kDdpModel}});
  json& models = out["models"] = json::array();
  for (const workload::Model& model : workload::models()) {
    models.push_back({{"name", model.name},
                      {"bytes", model.bytes()},
                      {"layers", model.layers},
                      {"kv_bytes_per_token", model.kv_bytes_per_token()}});
  }
  json& training = out["training_models"] = json::array();
  for (const workload::TrainingModel& model : workload::training_models()) {
    training.push_back(
        {{"name", model.name},
         {"what", model.what},
         {"gradient_bytes", model.gradient_bytes()},
         {"buckets", gradient_buckets(model, workload::kBucketBytesDefault).size()}});
  }
  json& policies = out["policies"] = {{"serving", estimate::serving_policy_names()},
                                      {"ddp", json::array()},
                                      {"ddp_nccl", json::array()}};
  for (const auto policy : estimate::ddp_policies()) policies["ddp"].push_back(policy);
  for (const auto policy : estimate::ddp_policies(estimate::Fabric::nccl)) {
    policies["ddp_nccl"].push_back(policy);
  }
  return out;
}

}  // namespace

Found serving_found(const EstimateSubject& subject, const Platform& platform,
                    std::span<const estimate::ServingRow> rows) {
  return {serving_text(subject, platform, rows), serving_json(subject, platform, rows)};
}

Found ddp_found(const DdpEstimate& estimate) {
  const bool nccl = estimate.options.fabric == estimate::Fabric::nccl;
  return {nccl ? nccl_text(estimate) : ddp_text(estimate), ddp_json(estimate)};
}

Found list_found() { return {list_text(), list_json()}; }

}  // namespace sealane::cli
