// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// FlexGen's pattern: a fixed batch of requests; every step streams all layers through the device,
// the next one arriving while one computes.

#include <numeric>

#include "mini_llm/batch.h"
#include "mini_llm/device_model.h"
#include "mini_llm/reference.h"
#include "mini_llm/schedule.h"

namespace examples {

namespace {

class FlexGen {
 public:
  FlexGen(const Settings& settings, const Model& model)
      : shape_(model.shape()),
        warmup_(settings.warmup),
        steps_(settings.steps_or(16)),
        requests_(settings.requests_or(4)),
        blocks_per_request_(KvCache::blocks_of(settings.prompt + warmup_ + steps_)),
        model_(model, compute_),
        layers_(model, compute_),
        activations_(shape_, static_cast<uint32_t>(requests_ * settings.prompt)),
        kv_(shape_, requests_ * blocks_per_request_),
        batch_(shape_, requests_ * settings.prompt, blocks_per_request_),
        generations_(requests_),
        blocks_(requests_) {
    for (size_t r = 0; r < requests_; ++r) {
      generations_[r].prompt = make_prompt(settings, shape_, r, settings.prompt);
      blocks_[r].resize(blocks_per_request_);
      std::iota(blocks_[r].begin(), blocks_[r].end(),
                static_cast<int32_t>(r * blocks_per_request_));
    }
  }
  ~FlexGen() { gpu::destroy(compute_); }
  FlexGen(const FlexGen&) = delete;
  FlexGen& operator=(const FlexGen&) = delete;

  // Device seconds without the warm-up.
  double run() {
    gpu::synchronize(compute_);
    run_steps(0, warmup_);
    warmup_bytes_ = layers_.bytes_sent();
    gpu::Stopwatch watch(compute_);
    run_steps(warmup_, warmup_ + steps_);
    return watch.stop(compute_);
  }

  const std::vector<Generation>& generations() const { return generations_; }
  uint64_t bytes_in() const { return layers_.bytes_sent() - warmup_bytes_; }
  uint64_t steps() const { return steps_; }

 private:
  // Steps [first, end); before and behind them nothing is under way.
  void run_steps(size_t first, size_t end) {
    turns_end_ = end * shape_.layers;
    if (first < end) layers_.load(first * shape_.layers, 0);
    const size_t prompt = generations_[0].prompt.size();
    for (size_t step = first; step < end; ++step) {
      // The first pass takes whole prompts, later ones the newest token.
      pass(step, step == 0 ? 0 : prompt + step - 1, prompt + step);
    }
  }

  // Positions [first, end) of every request go through the model.
  void pass(size_t step, size_t first, size_t end) {
    batch_.clear();
    for (size_t r = 0; r < requests_; ++r) {
      for (size_t position = first; position < end; ++position) {
        batch_.add(generations_[r].token_at(position), position, blocks_[r]);
      }
    }
    const Rows rows = batch_.send(compute_);
    model_.embed(activations_, rows);
    for (uint32_t layer = 0; layer < shape_.layers; ++layer) {
      const size_t turn = step * shape_.layers + layer;
      if (turn + 1 < turns_end_) layers_.load(turn + 1, (layer + 1) % shape_.layers);
      const LayerView weights = layers_.take(turn);
      model_.attend(activations_, rows, layer, weights, batch_.kv(kv_, layer));
      model_.mlp(activations_, rows, layer, weights);
      layers_.give_back(turn);
    }
    batch_.choose(model_, activations_, rows, compute_);
    for (size_t r = 0; r < requests_; ++r) {
      generations_[r].choices.push_back(batch_.choice((r + 1) * (end - first) - 1));
    }
  }

  const Shape shape_;
  const size_t warmup_;
  const size_t steps_;
  const size_t requests_;
  const size_t blocks_per_request_;
  gpu::Stream compute_ = gpu::make_stream();
  DeviceModel model_;
  LayerStream layers_;
  Activations activations_;
  KvCache kv_;
  Batch batch_;
  std::vector<Generation> generations_;
  std::vector<std::vector<int32_t>> blocks_;
  size_t turns_end_ = 0;  // loaded ahead of, never beyond
  uint64_t warmup_bytes_ = 0;
};

}  // namespace

void run_flexgen(const Settings& settings, const Model& model, Report& report) {
  FlexGen flexgen(settings, model);
  const double seconds = flexgen.run();
  if (settings.verify == "on") check_generation(model, flexgen.generations()[0], 3);
  const uint64_t tokens = flexgen.generations().size() * flexgen.steps();
  report.add("steps", flexgen.steps());
  report.add("tokens", tokens);
  report.add("bytes_in", flexgen.bytes_in());
  report.add("total_s", seconds);
  report.add("tokens_per_s", static_cast<double>(tokens) / seconds);
  report.add("hash", hash_of(flexgen.generations()));
}

}  // namespace examples
