// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Decoding with everything on the device: what is left to copy are the inputs and the sampled
// tokens of every step. The engine works one step ahead, as SGLang and vLLM do today: while the
// device computes a step, the host prepares the next and reads the tokens of the one before. Copies
// that block take that away. Engines that wait for each step's tokens, as vLLM did until its
// scheduler became asynchronous, have nothing of it to lose.
//
// A step is one graph, or as many launches as it has kernels, or something between: what one more
// launch costs the host, it costs once for each of them.

#include <cmath>

#include "base/try.h"
#include "workload/serving/engine.h"

namespace sealane::workload {
namespace {

// The launches of a step.
uint64_t launches_of(const Model& model, Graphs graphs, double kernels_per_layer) {
  constexpr uint64_t kOutsideLayers = 10;         // embedding, output matrix, sampling
  constexpr uint64_t kOutsideGraphsPerLayer = 2;  // the cache is written, attention
  if (graphs == Graphs::full) return 1;
  if (graphs == Graphs::piecewise) return model.layers * (1 + kOutsideGraphsPerLayer) + 1;
  const auto layers = static_cast<double>(model.layers);
  return static_cast<uint64_t>(std::llround(layers * kernels_per_layer)) + kOutsideLayers;
}

struct Shape {
  uint64_t concurrency = 0;
  uint64_t prompt = 0;
  uint64_t steps = 0;
  uint64_t copies = 0;    // to the device in a step
  uint64_t launches = 0;  // in a step
  bool ahead = true;
  Duration host_time{0};
  Duration dispatch{0};                 // before a launch; of a graph it is in the host's time
  std::optional<Duration> step_time{};  // if it was measured
};

class Decode final : public Engine {
 public:
  static constexpr uint64_t kWarmUp = 5;  // steps

  Decode(const Model& model, const Roofline& gpu, const Shape& shape)
      : model_(model), gpu_(gpu), shape_(shape) {}

 private:
  void set_up() override {
    // Two sets, because a step's inputs are written while the last one's are still on their way.
    const uint64_t control = ControlCopies::kCopies * ControlCopies::kRegionBytes;
    for (int i = 0; i < 2; ++i) {
      const Range host = host_memory(control);
      control_[i] = ControlCopies(host, device_memory(control));
      tokens_[i] = host_memory(8 * shape_.concurrency);
    }
    tokens_on_device_ = device_memory(8 * shape_.concurrency);
  }

  bool step(Instant now) override {
    if (done_ == kWarmUp) began_ = now;
    if (done_ == kWarmUp + shape_.steps) {
      achieved_.time = now - began_;
      achieved_.units = static_cast<double>(shape_.steps * shape_.concurrency);
      return false;
    }
    const uint32_t turn = done_ % 2;
    think(shape_.host_time);
    const auto send = [&](const Range& host, uint64_t device) {
      call(WriteHost{host});
      copy_in(kCompute, host, device);
    };
    control_[turn].each(shape_.concurrency, send, shape_.copies);
    compute();
    if (shape_.copies > 0) copy_out(kCompute, tokens_[turn], tokens_on_device_);
    call(RecordEvent{kUsed[turn], kCompute});
    const uint32_t due = shape_.ahead ? 1 - turn : turn;
    if (done_ > 0 || !shape_.ahead) {
      call(SyncEvent{kUsed[due]});
      call(ReadHost{tokens_[due]});
    }
    ++done_;
    return true;
  }

  // Every launch is given the same share of the step.
  void compute() {
    const uint64_t context = shape_.concurrency * (shape_.prompt + done_);
    const Duration step = shape_.step_time
                              ? *shape_.step_time
                              : step_time(model_, gpu_, Batch::decode(shape_.concurrency, context));
    const auto launches = static_cast<int64_t>(shape_.launches);
    for (int64_t i = 0; i < launches; ++i) {
      if (launches > 1) think(std::max(Duration{0}, shape_.dispatch - kThink));
      launch(step * (i + 1) / launches - step * i / launches);
    }
  }

  Model model_;
  Roofline gpu_;
  Shape shape_;
  ControlCopies control_[2];
  Range tokens_[2];
  uint64_t tokens_on_device_ = 0;
  uint64_t done_ = 0;
  Instant began_{};
};

}  // namespace

Result<std::unique_ptr<Feed>> make_decode(const Model& model, const Roofline& gpu,
                                          const ServingOptions& options) {
  const Graphs graphs = options.graphs.value_or(Graphs::full);
  const double kernels = options.kernels_per_layer.value_or(kKernelsPerLayer);
  const auto from_us = [](double us) { return Duration(std::llround(us * 1e3)); };
  Shape shape{.concurrency = options.concurrency.value_or(16),
              .prompt = options.prompt.value_or(256),
              .steps = options.steps.value_or(400),
              .copies = options.step_copies.value_or(ControlCopies::kCopies),
              .launches = launches_of(model, graphs, kernels),
              .ahead = options.steps_ahead.value_or(1) > 0,
              .host_time = {},
              .dispatch = from_us(options.dispatch_us.value_or(kDispatchUs))};
  const double each_us = options.sequence_us.value_or(kSequenceUs);
  shape.host_time =
      from_us(options.host_us.value_or(kHostUs) + each_us * static_cast<double>(shape.concurrency));
  if (options.step_ms) shape.step_time = from_us(1e3 * *options.step_ms);
  const uint64_t tokens = shape.concurrency * (shape.prompt + shape.steps + Decode::kWarmUp);
  const uint64_t bytes = model.bytes() + tokens * model.kv_bytes_per_token();
  SEALANE_TRY(must_fit_gpu("the model with its KV cache", bytes, gpu));
  return std::unique_ptr<Feed>(std::make_unique<Decode>(model, gpu, shape));
}

}  // namespace sealane::workload
