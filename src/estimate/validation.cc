// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows about machines, serving and training; those about recorded runs are in
// validation_traces.cc.

#include "estimate/validation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/bytes.h"
#include "estimate/ddp.h"
#include "estimate/serving.h"
#include "estimate/validation_traces.h"
#include "platform/cost.h"
#include "platform/reader.h"
#include "platform/spread.h"
#include "workload/serving/serving.h"

namespace sealane::estimate {
namespace {

double us(Duration time) { return static_cast<double>(time.count()) / 1e3; }

class Validator {
 public:
  // With a draw: the same, on platforms that were drawn from their spreads.
  Validator(const ValidationOptions& options, std::optional<uint32_t> draw)
      : options_(options), draw_(draw) {}

  Result<Validation> run() {
    Result<std::vector<Check>> traces = recorded_runs();  // first, for they may be missing
    if (!traces) return traces.error();
    for (const auto step : {&Validator::copies, &Validator::pipellm, &Validator::small_copies,
                            &Validator::blackwell, &Validator::training}) {
      if (Status status = (this->*step)(); !status) return status.error();
    }
    result_.checks.insert(result_.checks.end(), traces->begin(), traces->end());
    return std::move(result_);
  }

 private:
  void tell(const std::string& what) const {
    if (!options_.progress) return;
    const std::string time =
        draw_ ? fmt::format(", draw {} of {}", *draw_ + 1, options_.draws) : std::string();
    options_.progress(what + time);
  }
  Result<Platform> platform(const std::string& name) const {
    auto found = find_platform(name);
    if (!found || !draw_) return found;
    return drawn(*found, *draw_, options_.draws);
  }
  void add(Check check) { result_.checks.push_back(std::move(check)); }

  Result<std::vector<Check>> recorded_runs() {
    if (options_.data.empty()) {
      result_.notes.emplace_back(
          "the Nsight traces of four programs were left out: --data DIR says where nsys/ is");
      return std::vector<Check>{};
    }
    tell("recorded runs");
    const auto where = platform(kTracedPlatform);
    if (!where) return where.error();
    return check_traces(options_.data, *where);
  }

  // --- copy micro-benchmarks

  struct Point {
    uint64_t bytes;
    double published;
    bool calibrated;
  };

  // `rates` are GB/s instead of us.
  Status copy_points(const std::string& platform_name, bool to_device, HostMemory memory,
                     const std::string& source, bool rates, const std::vector<Point>& points) {
    const auto where = platform(platform_name);
    if (!where) return where.error();
    const Path& path = to_device ? where->to_device : where->to_host;
    for (const Point& point : points) {
      const double time = us(stock_copy_time(*where, path, memory, point.bytes));
      const double predicted = rates ? static_cast<double>(point.bytes) / time / 1e3 : time;
      const std::string size =
          point.bytes >= 1_MiB ? fmt::format("{} MiB", point.bytes / 1_MiB)
                               : (point.bytes >= 1_KiB ? fmt::format("{} KiB", point.bytes / 1_KiB)
                                                       : fmt::format("{} B", point.bytes));
      add({.group = "copies",
           .what = fmt::format("{} {}, {}{}", platform_name, to_device ? "to device" : "to host",
                               memory == HostMemory::pinned ? "" : "pageable ", size),
           .unit = rates ? "GB/s" : "us",
           .published_low = point.published,
           .published_high = point.published,
           .predicted = predicted,
           .calibrated = point.calibrated,
           .source = source});
    }
    return {};
  }

  Status copies() {
    tell("copies");
    const std::string first = "ISPASS'25 artifact";
    const std::string second = "ISPASS'26 artifact";
    const auto rates = [](const std::vector<double>& values) {
      const std::vector<uint64_t> sizes{64_KiB, 256_KiB, 1_MiB, 4_MiB, 16_MiB, 64_MiB};
      std::vector<Point> points;
      for (size_t i = 0; i < values.size(); ++i) {
        points.push_back({sizes[i], values[i], i == 0 || i + 1 == values.size()});
      }
      return points;
    };
    const std::vector<Status> all{
        copy_points("h100-nvl-tdx", true, HostMemory::pinned, first, false,
                    {{64, 21.9, true},
                     {4_KiB, 24.0, false},
                     {64_KiB, 52.3, true},
                     {1_MiB, 399, false},
                     {32_MiB, 11'079, true}}),
        copy_points("h100-nvl-tdx", false, HostMemory::pinned, first, false,
                    {{64, 21.5, true},
                     {4_KiB, 23.1, false},
                     {64_KiB, 45.8, true},
                     {1_MiB, 382, false},
                     {32_MiB, 11'255, true}}),
        copy_points("h100-nvl-tdx", true, HostMemory::pageable, first, true,
                    {{32_MiB, 2.74, true}}),
        copy_points("h100-tdx", true, HostMemory::pinned, second, true,
                    rates({2.1, 5.7, 8.0, 9.3, 10.1, 10.3})),
        copy_points("h100-tdx", false, HostMemory::pinned, second, true,
                    rates({2.6, 5.7, 7.8, 9.5, 10.7, 10.7})),
        copy_points("h100-sev", true, HostMemory::pinned, second, true,
                    rates({1.9, 3.0, 3.6, 4.0, 4.2, 4.25})),
        copy_points("h100-sev", false, HostMemory::pinned, second, true,
                    rates({1.9, 3.0, 3.6, 4.1, 4.2, 4.3})),
        copy_points("b200-tdx", true, HostMemory::pinned, "article on arXiv 2608.26575", true,
                    {{1_MiB, 7.2, false}, {16_MiB, 9.5, true}, {64_MiB, 9.5, true}})};
    for (const Status& status : all) {
      if (!status) return status;
    }
    return shares();
  }

  // Rates with CC on as a share of those with CC off.
  Status shares() {
    const auto where = platform("b200-tdx");
    if (!where) return where.error();
    const auto share = [&](const char* what, const Path& path, double published) {
      constexpr uint64_t kBytes = 64_MiB;
      const double off = us(open_copy_time(path, HostMemory::pinned, kBytes));
      const double on = us(stock_copy_time(*where, path, HostMemory::pinned, kBytes));
      add({.group = "copies",
           .what = what,
           .unit = "x",
           .published_low = published,
           .published_high = published,
           .predicted = off / on,
           .source = "arXiv 2606.23969",
           .note = "another GPU (B200), whose link is assumed; size assumed: 64 MiB"});
    };
    share("B300 to device, of CC off", where->to_device, 0.203);
    share("B300 to host, of CC off", where->to_host, 0.211);
    return {};
  }

  // --- serving

  Result<std::vector<ServingRow>> serve(const std::string& platform_name, const char* workload_name,
                                        const char* model, const workload::ServingOptions& options,
                                        const std::vector<std::string>& policies,
                                        uint32_t workers = 16) {
    tell(fmt::format("{} {}", workload_name, model));
    auto where = platform(platform_name);
    if (!where) return where.error();
    ServingPlan plan;
    plan.platform = *std::move(where);
    plan.workers = workers;
    for (const std::string& name : policies) plan.policies.push_back(*find_serving_policy(name));
    const workload::Roofline gpu = roofline_of(plan.platform);
    const Draw draw = draw_ ? Draw{*draw_, options_.draws} : Draw{};
    const auto make = [&] {
      return workload::make_serving(*workload::find_serving(workload_name),
                                    *workload::find_model(model), gpu, drawn(options, draw));
    };
    if (auto possible = make(); !possible) return possible.error();
    return estimate_serving(plan, [&](const Platform&, const Draw&) { return *make(); });
  }

  void loss(const std::string& what, double published_low, double published_high, double predicted,
            const std::string& source, const std::string& note) {
    add({.group = "PipeLLM",
         .what = what,
         .unit = "%",
         .published_low = published_low,
         .published_high = published_high,
         .predicted = predicted,
         .source = source,
         .note = note});
  }

  Status pipellm() {
    const std::string paper = "PipeLLM, arXiv 2411.03357, abstract";
    const std::string notes = "two readers' notes on PipeLLM; secondary";
    workload::ServingOptions flexgen_options;
    flexgen_options.steps = 1;
    const auto flexgen =
        serve("h100-sxm", "flexgen", "opt-66b", flexgen_options, {"stock", "pipellm"});
    if (!flexgen) return flexgen.error();
    loss("FlexGen OPT-66B, stock loss", 88.2, 88.2, (*flexgen)[1].loss_pct, paper,
         "sealing rate assumed: between the two published Xeons under TDX");

    // The paper's requests are not in what we have: what it swept is swept here too.
    double stock_worst = 0;
    double ours_best = 100;
    double ours_worst = 0;
    for (const auto lengths : {workload::Lengths::alpaca, workload::Lengths::sharegpt}) {
      for (const uint64_t samples : {2, 4, 6}) {
        workload::ServingOptions options;
        options.lengths = lengths;
        options.samples = samples;
        options.minutes = 1;
        options.swap_unit = workload::SwapUnit::layer;
        const auto rows = serve("h100-sxm", "vllm", "opt-30b", options, {"stock", "pipellm"});
        if (!rows) return rows.error();
        stock_worst = std::max(stock_worst, (*rows)[1].loss_pct);
        ours_worst = std::max(ours_worst, (*rows)[2].loss_pct);
        ours_best = std::min(ours_best, (*rows)[2].loss_pct);
      }
    }
    loss("vLLM OPT-30B, worst stock loss", 52.8, 52.8, stock_worst, paper,
         "worst of Alpaca and ShareGPT lengths with 2, 4, 6 answers, saturated, swapped by layer; "
         "by block it would be 60 %");
    loss("vLLM under PipeLLM, least loss", 5.2, 14.2, ours_best, notes, "same sweep");
    loss("vLLM under PipeLLM, worst loss", 5.2, 14.2, ours_worst, notes, "same sweep");
    loss("FlexGen OPT-66B under PipeLLM", 0, 19.6, (*flexgen)[2].loss_pct, paper,
         "bounded by the 40 GB/s that a hidden transfer reaches: 18.2 % if nothing else is lost");
    return {};
  }

  // What they did with CC off is known, so a step is as long as theirs was; what CC adds to it is
  // foretold.
  Status small_copies() {
    struct Published {
      uint64_t concurrency;
      double off;  // tokens/s
      double loss;
    };
    for (const Published& point : std::vector<Published>{{1, 172.896, 18.40},
                                                         {4, 588.373, 16.74},
                                                         {8, 1058.711, 15.14},
                                                         {16, 1758.951, 13.85},
                                                         {32, 2547.794, 9.84},
                                                         {64, 2980.74, 7.36},
                                                         {128, 3246.715, 4.80},
                                                         {256, 3309.584, 2.83}}) {
      workload::ServingOptions options;
      options.concurrency = point.concurrency;
      options.step_ms = 1e3 * static_cast<double>(point.concurrency) / point.off;
      const auto rows = serve("h100-tdx", "decode", "llama-3-8b", options, {"stock"}, 4);
      if (!rows) return rows.error();
      add({.group = "small copies",
           .what = fmt::format("SGLang, {} at a time, stock loss", point.concurrency),
           .unit = "%",
           .published_low = point.loss,
           .published_high = point.loss,
           .predicted = (*rows)[1].loss_pct,
           .source = "SGLang PR 15188",
           .note = "the length of a step is theirs with CC off; machine and host work per step "
                   "(1 ms) assumed"});
    }
    return {};
  }

  Status blackwell() {
    workload::ServingOptions options;
    const auto decode = serve("b200-tdx", "decode", "llama-3-8b", options, {"stock", "sealane"}, 4);
    if (!decode) return decode.error();
    add({.group = "small copies",
         .what = "vLLM on Blackwell, stock loss",
         .unit = "%",
         .published_low = 13,
         .published_high = 27,
         .predicted = (*decode)[1].loss_pct,
         .source = "arXiv 2606.23969",
         .note = "model, concurrency (16) and host work per step (1 ms) assumed"});
    add({.group = "small copies",
         .what = "SGLang on B200, unpatched, stock loss",
         .unit = "%",
         .published_low = 34,
         .published_high = 39,
         .predicted = (*decode)[1].loss_pct,
         .source = "article on arXiv 2608.26575",
         .note = "model, concurrency (16) and host work per step (1 ms) assumed"});
    const auto restore = serve("b200-tdx", "kv-restore", "llama-3-8b", options, {"stock"});
    if (!restore) return restore.error();
    add({.group = "restore and load",
         .what = "KV restore to first token, stock",
         .unit = "x",
         .published_low = 2.31,
         .published_high = 2.31,
         .predicted = *(*restore)[1].latency_p50_ms / *(*restore)[0].latency_p50_ms,
         .source = "B300 report: KV restore +131 %",
         .note = "another GPU (B200); prefix and model assumed"});
    const auto load = serve("b200-tdx", "load", "llama-3-8b", options, {"stock"});
    if (!load) return load.error();
    add({.group = "restore and load",
         .what = "model load, stock",
         .unit = "x",
         .published_low = 34,
         .published_high = 34,
         .predicted = (*load)[1].slowdown,
         .source = "B300 report: model load 34x slower",
         .note = "another GPU (B200); the rates we have explain only this much"});
    return {};
  }

  // --- training

  Result<double> slowdown(const char* model, const Platform& platform, const DdpOptions& options,
                          const char* policy) {
    const std::vector<std::string> policies{policy};
    auto rows = estimate_ddp(*workload::find_training_model(model), platform, options, policies);
    if (!rows) return rows.error();
    return rows->back().slowdown;
  }

  Status training() {
    tell("training");
    const auto where = platform("h100-nvl-tdx");
    if (!where) return where.error();
    const std::string paper = "GPU-TEE DDP study, arXiv 2501.11771";
    const auto point = [&](const std::string& what, double published, double predicted,
                           bool calibrated, const std::string& note) {
      add({.group = "DDP study",
           .what = what,
           .unit = "x",
           .published_low = published,
           .published_high = published,
           .predicted = predicted,
           .calibrated = calibrated,
           .source = paper,
           .note = note});
    };
    DdpOptions usual;
    if (draw_) {
      usual.draws = options_.draws;
      usual = drawn(usual, *draw_);
      usual.draws = 0;
    }
    const auto xl = slowdown("gpt2-xl", *where, usual, "study");
    const auto large = slowdown("gpt2-xl", *where, usual, "buckets");
    if (!xl) return xl.error();
    if (!large) return large.error();
    point("GPT-2-XL, 4 GPUs, 25 MiB buckets", kStudyPoint, *xl, true, "sets the cost of a message");
    point("GPT-2-XL, 4 GPUs, large buckets", 3.03, *large, false,
          "their size is not in what we have: 1 GiB assumed");
    double sum = 0;
    for (const auto& model : workload::training_models()) {
      const auto each = slowdown(std::string(model.name).c_str(), *where, usual, "study");
      if (!each) return each.error();
      sum += *each;
    }
    point("average over models, 4 GPUs", 8.68,
          sum / static_cast<double>(workload::training_models().size()), false,
          "over our nine models and batches; the study's are not in what we have");
    if (Status status = findings(*where, paper); !status) return status;
    return encrypted_nvlink(usual);
  }

  Status encrypted_nvlink(DdpOptions options) {
    const auto where = platform("b200-tdx");
    if (!where) return where.error();
    options.link = Link::nvlink_encrypted;
    const auto step = slowdown("gpt2-xl", *where, options, "stock");
    if (!step) return step.error();
    add({.group = "training on B200",
         .what = "a step over encrypted NVLink",
         .unit = "x",
         .published_low = 1.11,
         .published_high = 1.24,
         .predicted = *step,
         .source = "article on arXiv 2608.26575: +11 to +24 % a step",
         .note = "GPT-2-XL on 4 GPUs assumed; launches, which cost more in CC mode, are not in the "
                 "model of training"});
    return {};
  }

  // What the study found, as yes (1) or no (0).
  Status findings(const Platform& platform, const std::string& paper) {
    const auto grows = [&](const std::string& what, const std::vector<DdpOptions>& options,
                           bool more) {
      double last = more ? 0 : 1e300;
      bool holds = true;
      for (const DdpOptions& each : options) {
        const auto now = slowdown("gpt2-xl", platform, each, "study");
        holds = holds && now && (more ? *now > last : *now < last);
        last = now ? *now : last;
      }
      add({.group = "DDP study",
           .what = what,
           .unit = "holds",
           .published_low = 1,
           .published_high = 1,
           .predicted = holds ? 1.0 : 0.0,
           .source = paper});
    };
    std::vector<DdpOptions> gpus(4);
    for (size_t i = 0; i < gpus.size(); ++i) gpus[i].gpus = 2u << i;
    grows("slowdown grows with the number of GPUs (2 to 16)", gpus, true);
    std::vector<DdpOptions> buckets(5);
    for (size_t i = 0; i < buckets.size(); ++i) buckets[i].bucket_bytes = 25_MiB << i;
    grows("slowdown falls with the size of buckets (25 to 400 MiB)", buckets, false);
    std::reverse(buckets.begin(), buckets.end());
    grows("slowdown grows with the number of all-reduces", buckets, true);
    return {};
  }

  const ValidationOptions& options_;
  const std::optional<uint32_t> draw_;
  Validation result_;
};

}  // namespace

double Check::error() const {
  if (predicted >= published_low && predicted <= published_high) return 0;
  const double nearer = predicted < published_low ? published_low : published_high;
  if (in_points()) return predicted - nearer;
  return nearer == 0 ? 0 : 100 * (predicted / nearer - 1);
}

Result<Validation> validate(const ValidationOptions& options) {
  auto result = Validator(options, std::nullopt).run();
  if (!result || options.draws == 0) return result;
  std::vector<std::vector<Check>> all;
  for (uint32_t draw = 0; draw < options.draws; ++draw) {
    auto again = Validator(options, draw).run();
    if (!again) return again.error();
    all.push_back(std::move(again->checks));
  }
  set_range(result->checks, all, &Check::predicted, &Check::range);
  return result;
}

}  // namespace sealane::estimate
