// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Decoding with everything on the device: what is left to copy are the inputs and the sampled
// tokens of every step. The engine works one step ahead, as SGLang and vLLM do: while the device
// computes a step, the host prepares the next and reads the tokens of the one before. Copies that
// block take that away.

#include <cmath>

#include "workload/serving/engine.h"

namespace sealane::workload {
namespace {

class Decode final : public Engine {
 public:
  static constexpr uint64_t kWarmUp = 5;  // steps

  Decode(const Model& model, const Roofline& gpu, uint64_t concurrency, uint64_t prompt,
         uint64_t steps, Duration host_time, std::optional<Duration> step_time)
      : model_(model),
        gpu_(gpu),
        concurrency_(concurrency),
        prompt_(prompt),
        steps_(steps),
        host_time_(host_time),
        step_time_(step_time) {}

 private:
  void set_up() override {
    // Two sets, because a step's inputs are written while the last one's are still on their way.
    const uint64_t control = ControlCopies::kCopies * ControlCopies::kRegionBytes;
    for (int i = 0; i < 2; ++i) {
      const Range host = host_memory(control);
      control_[i] = ControlCopies(host, device_memory(control));
      tokens_[i] = host_memory(8 * concurrency_);
    }
    tokens_on_device_ = device_memory(8 * concurrency_);
  }

  bool step(Instant now) override {
    if (done_ == kWarmUp) began_ = now;
    if (done_ == kWarmUp + steps_) {
      achieved_.time = now - began_;
      achieved_.units = static_cast<double>(steps_ * concurrency_);
      return false;
    }
    const uint32_t turn = done_ % 2;
    think(host_time_);
    control_[turn].each(concurrency_, [&](const Range& host, uint64_t device) {
      call(WriteHost{host});
      copy_in(kCompute, host, device);
    });
    const Batch batch = Batch::decode(concurrency_, concurrency_ * (prompt_ + done_));
    launch(step_time_ ? *step_time_ : step_time(model_, gpu_, batch));
    copy_out(kCompute, tokens_[turn], tokens_on_device_);
    call(RecordEvent{kUsed[turn], kCompute});
    if (done_ > 0) {
      call(SyncEvent{kUsed[1 - turn]});
      call(ReadHost{tokens_[1 - turn]});
    }
    ++done_;
    return true;
  }

  Model model_;
  Roofline gpu_;
  uint64_t concurrency_;
  uint64_t prompt_;
  uint64_t steps_;
  Duration host_time_;
  std::optional<Duration> step_time_;  // if it was measured
  ControlCopies control_[2];
  Range tokens_[2];
  uint64_t tokens_on_device_ = 0;
  uint64_t done_ = 0;
  Instant began_{};
};

}  // namespace

Result<std::unique_ptr<Feed>> make_decode(const Model& model, const Roofline& gpu,
                                          const ServingOptions& options) {
  const uint64_t concurrency = options.concurrency.value_or(16);
  const uint64_t prompt = options.prompt.value_or(256);
  const uint64_t steps = options.steps.value_or(400);
  const uint64_t kv = concurrency * (prompt + steps + Decode::kWarmUp) * model.kv_bytes_per_token();
  if (Status fits = must_fit_gpu("the model with its KV cache", model.bytes() + kv, gpu); !fits) {
    return fits.error();
  }
  const Duration host(std::llround(options.host_us.value_or(kHostUs) * 1e3));
  std::optional<Duration> step;
  if (options.step_ms) step = Duration(std::llround(*options.step_ms * 1e6));
  return std::unique_ptr<Feed>(
      std::make_unique<Decode>(model, gpu, concurrency, prompt, steps, host, step));
}

}  // namespace sealane::workload
