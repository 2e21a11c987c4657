// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// LoRA fine-tuning with frozen weights on the host: they come in layer by layer for the forward
// pass and again, from the last to the first, for the backward pass, one layer ahead of the
// kernels. The adapters and their optimiser are small and stay on the device.

#include "base/try.h"
#include "workload/serving/engine.h"
#include "workload/serving/layers.h"

namespace sealane::workload {
namespace {

class Peft final : public Engine {
 public:
  Peft(const Model& model, const Roofline& gpu, uint64_t batch, uint64_t length, uint64_t steps,
       double on_host)
      : model_(model),
        gpu_(gpu),
        batch_(batch),
        length_(length),
        steps_(steps),
        on_host_(on_host) {}

 private:
  static constexpr uint32_t kWarmUp = 2;  // steps

  void set_up() override {
    for (uint32_t layer = 0; layer < model_.layers; ++layer) {
      weights_.emplace_back();
      for (const uint64_t bytes : offloaded_tensors(model_, on_host_)) {
        weights_.back().push_back(host_memory(bytes));
      }
    }
    for (uint64_t& buffer : buffers_) buffer = device_memory(model_.layer_bytes());
    samples_ = host_memory(8 * batch_ * length_);
    samples_on_device_ = device_memory(8 * batch_ * length_);
    loss_ = host_memory(64);
  }

  bool step(Instant now) override {
    if (done_ == kWarmUp) began_ = now;
    if (done_ == kWarmUp + steps_) {
      achieved_.time = now - began_;
      achieved_.units = static_cast<double>(batch_ * length_ * steps_);
      return false;
    }
    call(WriteHost{samples_});
    copy_in(kCompute, samples_, samples_on_device_);
    const Duration forward = layer_time(model_, gpu_, Batch::prefill(batch_, length_));
    load(0);
    for (uint32_t i = 0; i < model_.layers; ++i) {
      compute(forward);
      if (i + 1 < model_.layers) load(i + 1);
    }
    // The last layer is still there. Activations are computed again, then gradients flow through:
    // twice the work.
    for (uint32_t i = model_.layers; i-- > 0;) {
      compute(2 * forward);
      if (i > 0) load(i - 1);
    }
    copy_out(kCompute, loss_, samples_on_device_);
    synchronise();
    ++done_;
    return true;
  }

  // The kernels of the layer that is on its way.
  void compute(Duration time) {
    follow(kCompute, kIn);
    launch(time);
    call(RecordEvent{kUsed[slot_], kCompute});
  }

  // Into the buffer that the kernels before the current ones have used.
  void load(uint32_t layer) {
    slot_ = 1 - slot_;
    call(WaitEvent{kIn, kUsed[slot_]});
    uint64_t to = buffers_[slot_];
    for (const Range& tensor : weights_[layer]) {
      copy_in(kIn, tensor, to);
      to += tensor.bytes;
    }
  }

  Model model_;
  Roofline gpu_;
  uint64_t batch_;
  uint64_t length_;
  uint64_t steps_;
  double on_host_;
  std::vector<std::vector<Range>> weights_;
  uint64_t buffers_[2] = {};
  Range samples_;
  uint64_t samples_on_device_ = 0;
  Range loss_;
  uint32_t slot_ = 0;
  uint64_t done_ = 0;
  Instant began_{};
};

}  // namespace

Result<std::unique_ptr<Feed>> make_peft(const Model& model, const Roofline& gpu,
                                        const ServingOptions& options) {
  const double on_host = 1 - options.weights_on_gpu.value_or(0);
  const auto weights = static_cast<double>(model.layers * model.layer_bytes());
  const auto host = static_cast<uint64_t>(weights * on_host);
  SEALANE_TRY(must_fit_host(model, host, gpu));
  const auto device = static_cast<uint64_t>(weights * (1 - on_host)) + 2 * model.layer_bytes() +
                      model.embedding_bytes();
  SEALANE_TRY(must_fit_gpu("what stays of the weights", device, gpu));
  return std::unique_ptr<Feed>(std::make_unique<Peft>(model, gpu, options.batch.value_or(8),
                                                      options.prompt.value_or(512),
                                                      options.steps.value_or(2), on_host));
}

}  // namespace sealane::workload
