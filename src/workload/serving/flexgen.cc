// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// FlexGen's block schedule: while one layer computes batch by batch, the next layer's weights come
// in, the next batch's KV comes in and the last batch's new KV goes out, and then everybody waits
// for everybody. Two warm-up passes, then a prompt and some tokens; the time of all tokens is
// extrapolated from those, which are alike.

#include "base/try.h"
#include "workload/serving/engine.h"
#include "workload/serving/layers.h"

namespace sealane::workload {
namespace {

struct FlexGenShape {
  uint64_t batch;
  uint64_t batches;
  uint64_t prompt;
  uint64_t generate;
  uint64_t steps;
  double weights_on_host;
  double kv_on_host;
};

class FlexGen final : public Engine {
 public:
  FlexGen(const Model& model, const Roofline& gpu, const FlexGenShape& shape)
      : model_(model), gpu_(gpu), shape_(shape) {}

 private:
  static constexpr uint32_t kWarmUp = 2;  // passes

  void set_up() override {
    for (uint32_t layer = 0; layer < model_.layers; ++layer) {
      weights_.emplace_back();
      for (const uint64_t bytes : offloaded_tensors(model_, shape_.weights_on_host)) {
        weights_.back().push_back(host_memory(bytes));
      }
    }
    for (uint64_t i = 0; kv_bytes(1) > 0 && i < model_.layers * shape_.batches; ++i) {
      kv_.push_back(host_memory(kv_bytes(shape_.prompt + shape_.generate)));
    }
    for (uint64_t& buffer : weights_on_device_) buffer = device_memory(model_.layer_bytes());
    for (uint64_t& buffer : kv_on_device_) {
      buffer = device_memory(kv_bytes(shape_.prompt + shape_.generate) + 1);
    }
  }

  // The order of passes: warm-up tokens, the prompt, tokens.
  bool step(Instant now) override {
    if (pass_ == kWarmUp + 1) achieved_.time = now - began_;  // the prompt
    if (pass_ == kWarmUp + 1 + shape_.steps) {
      const Duration all = now - began_;
      achieved_.time +=
          all * static_cast<int64_t>(shape_.generate - 1) / static_cast<int64_t>(shape_.steps);
      achieved_.units = static_cast<double>(shape_.batch * shape_.batches * shape_.generate);
      return false;
    }
    if (pass_ == kWarmUp || pass_ == kWarmUp + 1) began_ = now;
    for (uint32_t layer = 0; layer < model_.layers; ++layer) compute(layer, pass_ == kWarmUp);
    ++pass_;
    return true;
  }

  void compute(uint32_t layer, bool prompt) {
    // Tokens in the middle of the answer stand for all.
    const uint64_t context = shape_.prompt + (prompt ? 0 : shape_.generate / 2);
    const Batch work = prompt ? Batch::prefill(shape_.batch, shape_.prompt)
                              : Batch::decode(shape_.batch, shape_.batch * context);
    for (uint64_t batch = 0; batch < shape_.batches; ++batch) {
      load_weights((layer + 1) % model_.layers, batch);
      if (!prompt) load_kv(layer, batch, context);
      launch(layer_time(model_, gpu_, work));
      store_kv(layer, batch, prompt ? shape_.prompt : 1);
      synchronise();
    }
  }

  // Each batch brings its share of the next layer's tensors.
  void load_weights(uint32_t layer, uint64_t batch) {
    const std::vector<Range>& tensors = weights_[layer];
    uint64_t to = weights_on_device_[layer % 2];
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (i % shape_.batches == batch) copy_in(kIn, tensors[i], to);
      to += tensors[i].bytes;
    }
  }

  void load_kv(uint32_t layer, uint64_t batch, uint64_t context) {
    if (kv_.empty()) return;
    const Range& all = kv_[layer * shape_.batches + batch];
    copy_in(kIn, {all.address, kv_bytes(context)}, kv_on_device_[batch % 2]);
    follow(kCompute, kIn);
  }

  void store_kv(uint32_t layer, uint64_t batch, uint64_t tokens) {
    if (kv_.empty()) return;
    const Range& all = kv_[layer * shape_.batches + batch];
    follow(kOut, kCompute);
    copy_out(kOut, {all.end() - kv_bytes(tokens), kv_bytes(tokens)}, kv_on_device_[batch % 2]);
  }

  // Of one layer and batch, the host's share.
  uint64_t kv_bytes(uint64_t tokens) const {
    const uint64_t all = tokens * shape_.batch * model_.kv_bytes_per_token_and_layer();
    return static_cast<uint64_t>(shape_.kv_on_host * static_cast<double>(all));
  }

  Model model_;
  Roofline gpu_;
  FlexGenShape shape_;
  std::vector<std::vector<Range>> weights_;  // by layer
  std::vector<Range> kv_;                    // by layer and batch
  uint64_t weights_on_device_[2] = {};
  uint64_t kv_on_device_[2] = {};
  uint64_t pass_ = 0;
  Instant began_{};
};

}  // namespace

Result<std::unique_ptr<Feed>> make_flexgen(const Model& model, const Roofline& gpu,
                                           const ServingOptions& options) {
  const FlexGenShape shape{.batch = options.batch.value_or(32),
                           .batches = options.gpu_batches.value_or(1),
                           .prompt = options.prompt.value_or(512),
                           .generate = options.generate.value_or(32),
                           .steps = options.steps.value_or(2),
                           .weights_on_host = 1 - options.weights_on_gpu.value_or(0),
                           .kv_on_host = 1 - options.kv_on_gpu.value_or(1)};
  const auto weights = static_cast<double>(model.layers * model.layer_bytes());
  const auto kv = static_cast<double>(shape.batch * shape.batches *
                                      (shape.prompt + shape.generate) * model.kv_bytes_per_token());
  const double host = weights * shape.weights_on_host + kv * shape.kv_on_host;
  const double device = weights * (1 - shape.weights_on_host) + kv * (1 - shape.kv_on_host) +
                        static_cast<double>(2 * model.layer_bytes() + model.embedding_bytes());
  SEALANE_TRY(must_fit_host(model, static_cast<uint64_t>(host), gpu));
  if (Status fits = must_fit_gpu("the batch with its KV cache and weights",
                                 static_cast<uint64_t>(device), gpu);
      !fits) {
    return fits.error();
  }
  return std::unique_ptr<Feed>(std::make_unique<FlexGen>(model, gpu, shape));
}

}  // namespace sealane::workload
