// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// vLLM's cpu-offload: some of the weights live on the host, and every step brings them in again
// where the layer needs them, in the stream of the kernels. The step without offload is given, so
// nothing of the model is needed but its layers.

#include <cmath>

#include "base/try.h"
#include "workload/serving/engine.h"

namespace sealane::workload {
namespace {

class WeightOffload final : public Engine {
 public:
  WeightOffload(const Model& model, uint64_t bytes, Duration step_time, uint64_t steps)
      : layers_(model.layers), bytes_(bytes), step_time_(step_time), steps_(steps) {}

 private:
  static constexpr uint64_t kWarmUp = 3;  // steps

  void set_up() override {
    for (uint32_t layer = 0; layer < layers_; ++layer) {
      weights_.push_back(host_memory(bytes_ / layers_));
    }
    buffer_ = device_memory(bytes_ / layers_);
    const uint64_t control = ControlCopies::kCopies * ControlCopies::kRegionBytes;
    const Range host = host_memory(control);
    control_ = ControlCopies(host, device_memory(control));
    token_ = host_memory(64);
  }

  bool step(Instant now) override {
    if (done_ == kWarmUp) began_ = now;
    if (done_ == kWarmUp + steps_) {
      achieved_.time = now - began_;
      achieved_.units = static_cast<double>(steps_);
      return false;
    }
    control_.each(1, [&](const Range& host, uint64_t device) {
      call(WriteHost{host});
      copy_in(kCompute, host, device);
    });
    for (const Range& layer : weights_) {
      copy_in(kCompute, layer, buffer_);
      launch(step_time_ / layers_);
    }
    copy_out(kCompute, token_, buffer_);
    synchronise();
    ++done_;
    return true;
  }

  uint32_t layers_;
  uint64_t bytes_;
  Duration step_time_;
  uint64_t steps_;
  std::vector<Range> weights_;
  uint64_t buffer_ = 0;
  ControlCopies control_;
  Range token_;
  uint64_t done_ = 0;
  Instant began_{};
};

}  // namespace

Result<std::unique_ptr<Feed>> make_weight_offload(const Model& model, const Roofline& gpu,
                                                  const ServingOptions& options) {
  const auto bytes = static_cast<uint64_t>(options.offload_gb.value_or(10) * 1e9);
  SEALANE_TRY(must_fit_host(model, bytes, gpu));
  if (bytes / model.layers == 0) return usage_error("--offload-gb: less than a byte of each layer");
  const Duration step(std::llround(options.step_ms.value_or(40) * 1e6));
  return std::unique_ptr<Feed>(
      std::make_unique<WeightOffload>(model, bytes, step, options.steps.value_or(10)));
}

}  // namespace sealane::workload
