// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A cache of prefixes in host memory: every request names one of them, its KV comes back layer by
// layer, the rest of the prompt is computed, and a short answer is generated. The latency is that
// of the first token.

#include <cmath>

#include "base/random.h"
#include "base/try.h"
#include "workload/serving/engine.h"

namespace sealane::workload {
namespace {

constexpr uint64_t kPrefixes = 32;  // in the cache

class KvRestore final : public Engine {
 public:
  KvRestore(const Model& model, const Roofline& gpu, uint64_t prefix, uint64_t prompt,
            uint64_t generate, uint64_t steps, Duration host_time, Duration front_time,
            uint64_t seed)
      : model_(model),
        gpu_(gpu),
        prefix_(prefix),
        prompt_(prompt),
        generate_(generate),
        steps_(steps),
        host_time_(host_time),
        front_time_(front_time),
        random_(seed) {}

 private:
  void set_up() override {
    for (uint64_t i = 0; i < kPrefixes; ++i) cache_.push_back(host_memory(prefix_bytes()));
    kv_on_device_ = device_memory(prefix_bytes());
    const uint64_t control = ControlCopies::kCopies * ControlCopies::kRegionBytes;
    const Range host = host_memory(control);
    control_ = ControlCopies(host, device_memory(control));
    token_ = host_memory(64);
  }

  // Two steps of the feed for each request, so that the first token's time is seen.
  bool step(Instant now) override {
    if (!answering_) {
      if (requests_ > 0) {
        ++achieved_.units;
        achieved_.time = now - began_;
      } else {
        began_ = now;
      }
      if (requests_ == steps_) return false;
      asked_ = now;
      restore();
      ++requests_;
    } else {
      achieved_.latencies.push_back(now - asked_);
      for (uint64_t i = 1; i < generate_; ++i) token(Batch::decode(1, prefix_ + prompt_ + i));
    }
    answering_ = !answering_;
    return true;
  }

  void restore() {
    think(front_time_ + host_time_);  // the request arrives and is looked at, its prefix found
    // Some prefixes are asked for far more often than others.
    const double skewed = random_.real() * random_.real();
    const Range& prefix = cache_[static_cast<size_t>(skewed * static_cast<double>(kPrefixes))];
    const uint64_t part = prefix_bytes() / model_.layers;
    for (uint32_t layer = 0; layer < model_.layers; ++layer) {
      copy_in(kIn, {prefix.address + layer * part, part}, kv_on_device_ + layer * part);
    }
    follow(kCompute, kIn);
    Batch work = Batch::prefill(1, prompt_);
    work.context += prefix_;
    work.pairs += prefix_ * prompt_;
    token(work);
  }

  void token(const Batch& work) {
    think(host_time_);
    control_.each(1, [&](const Range& host, uint64_t device) {
      call(WriteHost{host});
      copy_in(kCompute, host, device);
    });
    launch(step_time(model_, gpu_, work));
    copy_out(kCompute, token_, kv_on_device_);
    synchronise();
  }

  uint64_t prefix_bytes() const { return prefix_ * model_.kv_bytes_per_token(); }

  Model model_;
  Roofline gpu_;
  uint64_t prefix_;
  uint64_t prompt_;
  uint64_t generate_;
  uint64_t steps_;
  Duration host_time_;
  Duration front_time_;
  SeededRandom random_;
  std::vector<Range> cache_;
  uint64_t kv_on_device_ = 0;
  ControlCopies control_;
  Range token_;
  uint64_t requests_ = 0;
  bool answering_ = false;
  Instant began_{};
  Instant asked_{};
};

}  // namespace

Result<std::unique_ptr<Feed>> make_kv_restore(const Model& model, const Roofline& gpu,
                                              const ServingOptions& options) {
  const uint64_t prefix = options.prefix.value_or(4096);
  const uint64_t kv = prefix * model.kv_bytes_per_token();
  SEALANE_TRY(must_fit_host(model, kPrefixes * kv, gpu));
  SEALANE_TRY(must_fit_gpu("the model with the prefix", model.bytes() + kv, gpu));
  return std::unique_ptr<Feed>(std::make_unique<KvRestore>(
      model, gpu, prefix, options.prompt.value_or(64), options.generate.value_or(16),
      options.steps.value_or(60), Duration(std::llround(options.host_us.value_or(kHostUs) * 1e3)),
      Duration(std::llround(options.front_ms.value_or(kFrontMs) * 1e6)), options.seed));
}

}  // namespace sealane::workload
