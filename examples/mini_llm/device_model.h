// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The model on the device: what always stays there, the two buffers through which offloaded layers
// pass, and the forward pass as kernel launches on one stream. Not synchronised.
#pragma once

#include "mini_llm/model.h"

namespace examples {

// Buffers for the activations of up to `rows` tokens.
struct Activations {
  Activations(const Shape& shape, uint32_t rows);

  gpu::DeviceBuffer<float> x;       // the residual stream
  gpu::DeviceBuffer<float> normed;  // what the last norm made of it
  gpu::DeviceBuffer<float> query, key, value, attended;
  gpu::DeviceBuffer<float> gate, up, inner;
};

// The rows of a pass: tokens of any sequences. `tokens` and `positions` are device memory.
struct Rows {
  const int32_t* tokens;
  const int32_t* positions;
  uint32_t count;
  uint32_t context;  // the longest position + 1
};

// A paged KV cache of `blocks` blocks for all layers.
class KvCache {
 public:
  static constexpr uint32_t kBlockTokens = 16;

  KvCache(const Shape& shape, size_t blocks);

  static size_t blocks_of(size_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }
  float* block(int32_t number) const { return memory_.data() + size_t(number) * block_floats_; }
  size_t block_floats() const { return block_floats_; }
  size_t block_bytes() const { return block_floats_ * sizeof(float); }

  // `tables`: [rows][columns] in device memory.
  KvView layer(uint32_t index, const int32_t* tables, uint32_t columns) const;

 private:
  Shape shape_;
  size_t block_floats_;
  gpu::DeviceBuffer<float> memory_;
};

// Low-rank adapters on the query and value projections of a layer: W x + scale * up (down x). All
// pointers are device memory.
struct LayerAdapters {
  uint32_t rank;
  float scale;
  const float *query_down, *query_up, *value_down, *value_up;
  float *query_middle, *value_middle;  // down x, kept for the backward pass
};

class DeviceModel {
 public:
  DeviceModel(const Model& model, gpu::Stream stream);

  const Shape& shape() const { return shape_; }
  const float* gain(size_t index) const { return gains_.data() + index * shape_.hidden; }
  const float* embedding() const { return embedding_.data(); }

  void embed(const Activations& a, const Rows& rows) const;
  void attend(const Activations& a, const Rows& rows, uint32_t layer, const LayerView& weights,
              const KvView& kv, const LayerAdapters* adapters = nullptr) const;
  void mlp(const Activations& a, const Rows& rows, uint32_t layer, const LayerView& weights) const;
  void logits(const Activations& a, const Rows& rows, float* logits) const;

 private:
  // out = scale * in . weights^T, added to `out` if `accumulate`.
  void multiply(const float* in, const float* weights, float* out, uint32_t rows, uint32_t inputs,
                uint32_t outputs, float scale = 1, bool accumulate = false) const;

  Shape shape_;
  gpu::Stream stream_;
  gpu::DeviceBuffer<float> embedding_;
  gpu::DeviceBuffer<float> gains_;
};

// Streams layers from host memory into two device buffers, ahead of their use. Turns are counted
// from 0; load(turn) may be called once take(turn - 2) was given back.
class LayerStream {
 public:
  LayerStream(const Model& model, gpu::Stream compute);
  ~LayerStream();
  LayerStream(const LayerStream&) = delete;
  LayerStream& operator=(const LayerStream&) = delete;

  void load(size_t turn, size_t layer);
  LayerView take(size_t turn);  // what follows on the compute stream may use it
  void give_back(size_t turn);  // what follows on the compute stream does not

  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Slot {
    gpu::DeviceBuffer<float> memory;
    gpu::Event loaded;
    gpu::Event used;
  };

  const Model& model_;
  gpu::Stream compute_;
  gpu::Stream copies_ = gpu::make_stream();
  Slot slots_[2];
  uint64_t bytes_sent_ = 0;
};

}  // namespace examples
