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
#include "base/try.h"
#include "estimate/ddp.h"
#include "estimate/serving.h"
#include "estimate/validation_parts.h"
#include "platform/reader.h"
#include "platform/spread.h"
#include "workload/serving/serving.h"

namespace sealane::estimate {
namespace {

// What a comparison does not know of somebody else's workload is drawn like a number of a platform,
// within a factor of two: his step, batch, buckets, prefix.
constexpr double kWorkloadSpread = 1;

constexpr const char* kSerializedBridge = "arXiv 2606.23969";
constexpr const char* kB200Study = "arXiv 2608.26575";

class Validator {
 public:
  // With a draw: the same, on platforms that were drawn from their spreads.
  Validator(const ValidationOptions& options, std::optional<uint32_t> draw)
      : options_(options), draw_(draw) {}

  Result<Validation> run() {
    Result<std::vector<Check>> traces = recorded_runs();  // first, for they may be missing
    if (!traces) return traces.error();
    for (const auto step : {&Validator::copies, &Validator::pipellm, &Validator::small_copies,
                            &Validator::blackwell, &Validator::training, &Validator::kept_apart}) {
      SEALANE_TRY((this->*step)());
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
  Draw this_draw() const { return draw_ ? Draw{*draw_, options_.draws} : Draw{}; }
  // A number of a workload that nobody published.
  double unknown(const std::string& name, double assumed) const {
    if (!draw_) return assumed;
    return assumed * drawn_factor(name, kWorkloadSpread, *draw_, options_.draws);
  }
  void row(const char* group, const std::string& what, const char* unit, double low, double high,
           double predicted, const char* source, const std::string& note, bool calibrated = false) {
    result_.checks.push_back({.group = group,
                              .what = what,
                              .unit = unit,
                              .published_low = low,
                              .published_high = high,
                              .predicted = predicted,
                              .calibrated = calibrated,
                              .source = source,
                              .note = note});
  }

  Result<std::vector<Check>> recorded_runs() {
    if (options_.data.empty()) {
      result_.notes.emplace_back(
          "the Nsight traces of four programs were left out: --data DIR says where nsys/ is");
      return std::vector<Check>{};
    }
    tell("recorded runs");
    SEALANE_LET(const auto where, platform(kTracedPlatform));
    return check_traces(options_.data, where, this_draw());
  }

  Status copies() {
    tell("copies");
    auto checks = check_copies([this](const std::string& name) { return platform(name); });
    if (!checks) return checks.error();
    result_.checks.insert(result_.checks.end(), checks->begin(), checks->end());
    return {};
  }

  // --- serving

  Result<std::vector<ServingRow>> serve(const std::string& platform_name, const char* workload_name,
                                        const char* model, const workload::ServingOptions& options,
                                        const std::vector<std::string>& policies,
                                        uint32_t workers = 16) {
    tell(fmt::format("{} {}", workload_name, model));
    SEALANE_LET(auto where, platform(platform_name));
    ServingPlan plan;
    plan.platform = std::move(where);
    plan.workers = workers;
    for (const std::string& name : policies) plan.policies.push_back(*find_serving_policy(name));
    const workload::Roofline gpu = roofline_of(plan.platform);
    const Draw draw = this_draw();
    const auto make = [&] {
      return workload::make_serving(*workload::find_serving(workload_name),
                                    *workload::find_model(model), gpu, drawn(options, draw));
    };
    SEALANE_TRY(make());
    return estimate_serving(plan, [&](const Platform&, const Draw&) { return *make(); });
  }

  Status pipellm() {
    const char* const paper = "PipeLLM, arXiv 2411.03357, abstract";
    const char* const notes = "two readers' notes on PipeLLM; secondary";
    const auto loss = [this](const char* what, double low, double high, double predicted,
                             const char* source, const char* note) {
      row("PipeLLM", what, "%", low, high, predicted, source, note);
    };
    workload::ServingOptions flexgen_options;
    flexgen_options.steps = 1;
    SEALANE_LET(const auto flexgen,
                serve("h100-sxm", "flexgen", "opt-66b", flexgen_options, {"stock", "pipellm"}));
    loss("FlexGen OPT-66B, stock loss", 88.2, 88.2, flexgen[1].loss_pct, paper,
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
        SEALANE_LET(const auto rows,
                    serve("h100-sxm", "vllm", "opt-30b", options, {"stock", "pipellm"}));
        stock_worst = std::max(stock_worst, rows[1].loss_pct);
        ours_worst = std::max(ours_worst, rows[2].loss_pct);
        ours_best = std::min(ours_best, rows[2].loss_pct);
      }
    }
    loss("vLLM OPT-30B, worst stock loss", 52.8, 52.8, stock_worst, paper,
         "worst of Alpaca and ShareGPT lengths with 2, 4, 6 answers, saturated, swapped by layer; "
         "by block it would be 60 %");
    loss("vLLM under PipeLLM, least loss", 5.2, 14.2, ours_best, notes, "same sweep");
    loss("vLLM under PipeLLM, worst loss", 5.2, 14.2, ours_worst, notes, "same sweep");
    loss("FlexGen OPT-66B under PipeLLM", 0, 19.6, flexgen[2].loss_pct, paper,
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
      SEALANE_LET(const auto rows,
                  serve("h100-tdx", "decode", "llama-3-8b", options, {"stock", "async"}, 4));
      row("small copies", fmt::format("SGLang, {} at a time, stock loss", point.concurrency), "%",
          point.loss, point.loss, rows[1].loss_pct, "SGLang PR 15188",
          "the length of a step is theirs with CC off; machine and host work per step (1 ms) "
          "assumed; 256 at a time set what each sequence adds (2.8 us)",
          point.concurrency == 256);
      if (point.concurrency > 1) continue;
      row("small copies", "SGLang with a thread for copies, 1 at a time, loss", "%", 0, 1,
          rows[2].loss_pct, "SGLang PR 15188",
          "'restores full performance', read as a loss of 1 % at most; a thread for copies is what "
          "'async' has");
    }
    return {};
  }

  // A decoding step of a model that was not published: as long as Llama-3-8B's with 16 sequences.
  Result<workload::ServingOptions> some_step(const std::string& platform_name) {
    SEALANE_LET(const auto where, platform(platform_name));
    constexpr uint64_t kSequences = 16;
    constexpr uint64_t kContext = kSequences * 450;
    const Duration step =
        workload::step_time(*workload::find_model("llama-3-8b"), roofline_of(where),
                            workload::Batch::decode(kSequences, kContext));
    workload::ServingOptions options;
    options.step_ms = unknown("a step", static_cast<double>(step.count()) / 1e6);
    return options;
  }

  // Engines that let copies block, and those that were patched so that a thread of their own waits.
  Status blackwell() {
    SEALANE_LET(const auto options, some_step("b200-tdx"));
    SEALANE_LET(const auto decode,
                serve("b200-tdx", "decode", "llama-3-8b", options, {"stock", "async"}, 4));
    const ServingRow& stock = decode[1];
    const ServingRow& patched = decode[2];
    const char* group = "small copies";
    const std::string note = "model and concurrency assumed, host work per step too (1 ms)";
    const std::string by_thread = note + "; a thread for copies is what 'async' has";
    row(group, "vLLM on Blackwell, stock loss", "%", 13, 27, stock.loss_pct, kSerializedBridge,
        note);
    row(group, "SGLang on B200, unpatched, stock loss", "%", 34, 39, stock.loss_pct, kB200Study,
        note);
    row(group, "an engine that knows nothing of CC, time per token", "x", 1.3, 1.3, stock.slowdown,
        "Tinfoil, June 2026", note);
    row(group, "SGLang on B200, patched, loss", "%", 0, 1, patched.loss_pct, kB200Study, by_thread);
    row(group, "Qwen 3.5 on B300, patched, loss", "%", 0.9, 7.5, patched.loss_pct, "NVIDIA's blog",
        by_thread);
    row(group, "an engine that knows of CC, time per token", "x", 1.01, 1.01, patched.slowdown,
        "Tinfoil, June 2026", by_thread);
    SEALANE_TRY(launches(options));
    return restore_and_load();
  }

  // A step by itself: no copies, no work of the engine's.
  Status launches(workload::ServingOptions options) {
    options.step_copies = 0;
    options.host_us = 0;
    options.sequence_us = 0;
    const std::string note = "model assumed (Llama-3-8B, 16 sequences)";
    for (const auto& [graphs, what, published, more] :
         {std::tuple(workload::Graphs::none, "a step launched kernel by kernel", 2.41,
                     "; 10 kernels a layer and 9 us before each launch assumed"),
          std::tuple(workload::Graphs::full, "a step that is one graph", 1.04, "")}) {
      options.graphs = graphs;
      SEALANE_LET(const auto step, serve("b200-tdx", "decode", "llama-3-8b", options, {"stock"}));
      row("launches", fmt::format("B200, {}", what), "x", published, published, step[1].slowdown,
          kB200Study, note + more);
    }
    SEALANE_LET(const auto where, platform("b200-tdx"));
    const double kernels = 1 + where.gpu.kernel_slowdown;
    row("launches", "B300, 96,000 products in a graph", "x", 1.0012, 1.0012, kernels,
        kSerializedBridge, "what CC adds to kernels is known of an H100 only");
    row("launches", "B300, a product of matrices", "x", 1 / 0.998, 1 / 0.998, kernels,
        kSerializedBridge, "what CC adds to kernels is known of an H100 only");
    return {};
  }

  Status restore_and_load() {
    workload::ServingOptions options;
    constexpr double kPrefix = 4096;
    options.prefix = static_cast<uint64_t>(unknown("a prefix", kPrefix));
    SEALANE_LET(const auto restore,
                serve("b200-tdx", "kv-restore", "llama-3-8b", options, {"stock"}));
    const char* group = "restore and load";
    row(group, "KV restore to first token, stock", "x", 2.31, 2.31,
        *restore[1].latency_p50_ms / *restore[0].latency_p50_ms, kSerializedBridge,
        "another GPU (B200); prefix, model and the request's way to the engine (14 ms) assumed. "
        "Copies alone take 1 / 0.203 = 4.9 times as long there, so with CC off about a third of "
        "the published time were copies; the rest is that way and the prompt");
    SEALANE_LET(const auto load,
                serve("b200-tdx", "load", "llama-3-8b", {}, {"stock", "parallel"}));
    row(group, "model load, one context against a pool", "x", 34, 34,
        load[1].slowdown / load[2].slowdown, kSerializedBridge,
        "34 is 287 s against 8.4 s for GPT-OSS-120B, both with CC on (a reader's note on the "
        "paper; secondary). Another GPU (B200), tensors of Llama-3-8B; a pool of contexts is "
        "nearest to 'parallel'. 287 s are 0.23 GB/s, where one context copies 9.5: 687 tensors "
        "do not explain that, 870,000 crossings of 330 us would; what makes them is not published");
    return {};
  }

  // Found when the model was done, and foretold by the rules that were there: the machine that is
  // named, a step as long as any whose model is not published. Engines of 2024 and 2025 wait for
  // each step.
  Status kept_apart() {
    struct Published {
      const char* what;
      double low;
      double high;
      const char* platform;
      const char* policy;
      uint64_t steps_ahead;
      const char* source;
    };
    for (const Published& point : std::vector<Published>{
             {"H100 in TDX, in a closed loop, stock loss", 11.5, 20.2, "h100-tdx", "stock", 1,
              "arXiv 2607.19353"},
             {"H100 in TDX, at a fixed rate, stock loss", 17.7, 21.1, "h100-tdx", "stock", 1,
              "arXiv 2607.19353"},
             {"H100, Llama 2, stock loss", 4, 8, "h100-sev", "stock", 0, "arXiv 2509.18886"},
             {"H100 in SEV-SNP, most queries, stock loss", 0, 7, "h100-sev", "stock", 0,
              "arXiv 2409.03992"},
             {"DeepSeek-R1 on 8 B200, patched, loss", 1.8, 3.9, "b200-tdx", "async", 1,
              "NVIDIA's blog"}}) {
      SEALANE_LET(auto options, some_step(point.platform));
      options.steps_ahead = point.steps_ahead;
      SEALANE_LET(const auto rows,
                  serve(point.platform, "decode", "llama-3-8b", options, {point.policy}, 4));
      std::string note = "model, concurrency and host work per step (1 ms) assumed, as elsewhere";
      if (point.steps_ahead == 0) note += "; an engine that waits for each step assumed";
      row("kept apart", point.what, "%", point.low, point.high, rows[1].loss_pct, point.source,
          note);
    }
    return {};
  }

  // --- training

  Result<double> slowdown(const char* model, const Platform& platform, const DdpOptions& options,
                          const char* policy) {
    const std::vector<std::string> policies{policy};
    SEALANE_LET(auto rows,
                estimate_ddp(*workload::find_training_model(model), platform, options, policies));
    return rows.back().slowdown;
  }

  Status training() {
    tell("training");
    SEALANE_LET(const auto where, platform("h100-nvl-tdx"));
    const char* const paper = "GPU-TEE DDP study, arXiv 2501.11771";
    const auto point = [&](const char* what, double published, double predicted, bool calibrated,
                           const char* note) {
      row("DDP study", what, "x", published, published, predicted, paper, note, calibrated);
    };
    DdpOptions usual;
    if (draw_) {
      usual.draws = options_.draws;
      usual = drawn(usual, *draw_);
      usual.draws = 0;
    }
    const auto xl = slowdown("gpt2-xl", where, usual, "study");
    DdpOptions theirs = usual;
    theirs.large_bucket_bytes = static_cast<uint64_t>(
        unknown("large buckets", static_cast<double>(usual.large_bucket_bytes)));
    const auto large = slowdown("gpt2-xl", where, theirs, "buckets");
    if (!xl) return xl.error();
    if (!large) return large.error();
    point("GPT-2-XL, 4 GPUs, 25 MiB buckets", kStudyPoint, *xl, true, "sets the cost of a message");
    point("GPT-2-XL, 4 GPUs, large buckets", 3.03, *large, false,
          "their size is not in what we have: 1 GiB assumed");
    double sum = 0;
    for (const auto& model : workload::training_models()) {
      const double batch = unknown("batches", static_cast<double>(model.batch));
      theirs.batch = static_cast<uint64_t>(std::max(1.0, std::round(batch)));
      SEALANE_LET(const auto each,
                  slowdown(std::string(model.name).c_str(), where, theirs, "study"));
      sum += each;
    }
    point("average over models, 4 GPUs", 8.68,
          sum / static_cast<double>(workload::training_models().size()), false,
          "over our nine models and batches; the study's are not in what we have. None of it is "
          "copies: the study's path has a cost for each message, and the average is that of "
          "messages for each second of computing");
    SEALANE_TRY(findings(where, paper));
    return encrypted_nvlink(usual);
  }

  Status encrypted_nvlink(DdpOptions options) {
    SEALANE_LET(const auto where, platform("b200-tdx"));
    options.link = Link::nvlink_encrypted;
    const auto usual = static_cast<double>(workload::find_training_model("gpt2-xl")->batch);
    options.batch = static_cast<uint64_t>(std::round(unknown("batches", usual)));
    SEALANE_LET(const auto step, slowdown("gpt2-xl", where, options, "stock"));
    const char* group = "training on B200";
    const std::string note =
        "GPT-2-XL in bf16 on 4 GPUs, its batch and its launches assumed. A step waits for the "
        "all-reduce, 156 instead of 185 GB/s, and before that for the host, whose launches take "
        "longer than the kernels";
    row(group, "a step over encrypted NVLink", "x", 1.11, 1.24, step, kB200Study, note);
    row(group, "training, loss of throughput", "%", 18, 32, 100 * (1 - 1 / step),
        "Tinfoil, June 2026", note);
    return {};
  }

  // What the study found, as yes (1) or no (0).
  Status findings(const Platform& platform, const char* paper) {
    const auto grows = [&](const std::string& what, const std::vector<DdpOptions>& options,
                           bool more) {
      double last = more ? 0 : 1e300;
      bool holds = true;
      for (const DdpOptions& each : options) {
        const auto now = slowdown("gpt2-xl", platform, each, "study");
        holds = holds && now && (more ? *now > last : *now < last);
        last = now ? *now : last;
      }
      row("DDP study", what, "holds", 1, 1, holds ? 1.0 : 0.0, paper, "");
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
    SEALANE_LET(auto again, Validator(options, draw).run());
    all.push_back(std::move(again.checks));
  }
  set_range(result->checks, all, &Check::predicted, &Check::range);
  return result;
}

}  // namespace sealane::estimate
