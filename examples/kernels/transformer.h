// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The forward pass of mini_llm's decoder: fp32, rows are tokens of any sequences, keys and values
// in a paged cache. Positions enter through ALiBi's linear bias.
#pragma once

#include "kernels/device_code.h"

namespace examples {

// The widest attention head; its accumulators live in registers or on the stack.
inline constexpr uint32_t kHeadWidthMax = 64;

// ALiBi's slope of a head: 2^(-8 (head + 1) / heads).
SEALANE_DEVICE inline float alibi_slope(uint32_t head, uint32_t heads) {
  return exp2f(-8.0f * static_cast<float>(head + 1) / static_cast<float>(heads));
}

// out[row] = table[tokens[row]]
struct Embed {
  const float* table;  // [vocabulary][width]
  const int32_t* tokens;
  float* out;
  uint32_t rows;
  uint32_t width;
  uint32_t vocabulary;

  SEALANE_DEVICE size_t items() const { return size_t{rows} * width; }
  SEALANE_DEVICE void item(size_t i) const {
    out[i] = table[size_t(tokens[i / width]) * width + i % width];
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(table, size_t{vocabulary} * width, size_t{rows} * width);
    visit(tokens, rows);
    visit(out, size_t{rows} * width);
  }

  double operations() const { return 0; }
};

SEALANE_DEVICE inline float inverse_rms(const float* row, uint32_t width) {
  return 1.0f / sqrtf(dot(row, row, width) / static_cast<float>(width) + 1e-5f);
}

// out[row] = in[row] / rms(in[row]) * gain
struct RmsNorm {
  const float* in;
  const float* gain;
  float* out;
  uint32_t rows;
  uint32_t width;

  SEALANE_DEVICE size_t items() const { return rows; }
  SEALANE_DEVICE void item(size_t row) const {
    const float* const x = in + row * width;
    const float scale = inverse_rms(x, width);
    for (uint32_t i = 0; i < width; ++i) out[row * width + i] = x[i] * scale * gain[i];
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(in, size_t{rows} * width);
    visit(gain, width);
    visit(out, size_t{rows} * width);
  }

  double operations() const { return 4.0 * rows * width; }
};

// out[row][o] = scale * in[row] . weights[o], added to what is there if `accumulate`.
struct Gemm {
  const float* in;       // [rows][inputs]
  const float* weights;  // [outputs][inputs]
  float* out;            // [rows][outputs]
  uint32_t rows;
  uint32_t inputs;
  uint32_t outputs;
  float scale;
  bool accumulate;

  // Neighbouring items share a row of weights, which is read once.
  SEALANE_DEVICE size_t items() const { return size_t{rows} * outputs; }
  SEALANE_DEVICE void item(size_t i) const {
    const size_t row = i % rows;
    const size_t output = i / rows;
    const float sum = scale * dot(in + row * inputs, weights + output * inputs, inputs);
    float& target = out[row * outputs + output];
    target = accumulate ? target + sum : sum;
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(in, size_t{rows} * inputs);
    visit(weights, size_t{outputs} * inputs);
    visit(out, size_t{rows} * outputs);
  }

  double operations() const { return 2.0 * rows * inputs * outputs; }
};

// Where the keys and values of one layer lie. The cache is made of blocks; a block has, for each
// layer, [key or value][token][width].
struct KvView {
  float* cache;           // of all blocks
  const int32_t* tables;  // [rows][table_columns]: the blocks of each row's sequence
  size_t cache_floats;
  uint32_t table_columns;
  uint32_t block_tokens;
  uint32_t block_floats;
  uint32_t layer_offset;  // of this layer in a block
  uint32_t width;

  SEALANE_DEVICE float* key(size_t row, uint32_t position) const {
    const int32_t block = tables[row * table_columns + position / block_tokens];
    return cache + size_t(block) * block_floats + layer_offset +
           size_t{position % block_tokens} * width;
  }
  SEALANE_DEVICE float* value(size_t row, uint32_t position) const {
    return key(row, position) + size_t{block_tokens} * width;
  }
};

// Puts each row's key and value into the cache at the row's position; none for a row before the
// first position, which is there to fill up the rows.
struct StoreKv {
  const float* keys;
  const float* values;
  const int32_t* positions;
  KvView kv;
  uint32_t rows;

  SEALANE_DEVICE size_t items() const { return size_t{rows} * kv.width; }
  SEALANE_DEVICE void item(size_t i) const {
    const size_t row = i / kv.width;
    const size_t column = i % kv.width;
    if (positions[row] < 0) return;
    const auto position = static_cast<uint32_t>(positions[row]);
    kv.key(row, position)[column] = keys[i];
    kv.value(row, position)[column] = values[i];
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(keys, size_t{rows} * kv.width);
    visit(values, size_t{rows} * kv.width);
    visit(positions, rows);
    visit(kv.cache, kv.cache_floats, 2 * size_t{rows} * kv.width);
    visit(kv.tables, size_t{rows} * kv.table_columns);
  }

  double operations() const { return 0; }
};

// out[row] = causal attention of queries[row] over positions 0..positions[row] of its sequence; 0
// for a row before the first position.
struct Attention {
  const float* queries;
  const int32_t* positions;
  float* out;
  KvView kv;
  uint32_t rows;
  uint32_t heads;
  uint32_t context;  // the longest of the rows, for operations()

  SEALANE_DEVICE size_t items() const { return size_t{rows} * heads; }

  // One pass with a running maximum, rescaling what was summed when the maximum grows.
  SEALANE_DEVICE void item(size_t i) const {
    const size_t row = i / heads;
    const auto head = static_cast<uint32_t>(i % heads);
    const uint32_t head_width = kv.width / heads;
    const size_t first = size_t{head} * head_width;
    const float* const query = queries + row * kv.width + first;
    const float scale = 1.0f / sqrtf(static_cast<float>(head_width));
    const float slope = alibi_slope(head, heads);
    float* const target = out + row * kv.width + first;
    if (positions[row] < 0) {
      for (uint32_t d = 0; d < head_width; ++d) target[d] = 0;
      return;
    }
    const auto last = static_cast<uint32_t>(positions[row]);
    float sum[kHeadWidthMax] = {};
    float weight_sum = 0;
    float maximum = -INFINITY;
    for (uint32_t position = 0; position <= last; ++position) {
      const float distance = static_cast<float>(last - position);
      const float score =
          dot(query, kv.key(row, position) + first, head_width) * scale - slope * distance;
      if (score > maximum) {
        const float shrink = expf(maximum - score);
        for (uint32_t d = 0; d < head_width; ++d) sum[d] *= shrink;
        weight_sum *= shrink;
        maximum = score;
      }
      const float weight = expf(score - maximum);
      const float* const value = kv.value(row, position) + first;
      for (uint32_t d = 0; d < head_width; ++d) sum[d] += weight * value[d];
      weight_sum += weight;
    }
    for (uint32_t d = 0; d < head_width; ++d) target[d] = sum[d] / weight_sum;
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(queries, size_t{rows} * kv.width);
    visit(positions, rows);
    visit(out, size_t{rows} * kv.width);
    visit(kv.cache, kv.cache_floats, 2 * size_t{rows} * context * kv.width);
    visit(kv.tables, size_t{rows} * kv.table_columns);
  }

  double operations() const { return 4.0 * rows * context * kv.width; }
};

SEALANE_DEVICE inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// out = silu(gate) * up
struct SiluMul {
  const float* gate;
  const float* up;
  float* out;
  uint32_t count;

  SEALANE_DEVICE size_t items() const { return count; }
  SEALANE_DEVICE void item(size_t i) const { out[i] = gate[i] * sigmoid(gate[i]) * up[i]; }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(gate, count);
    visit(up, count);
    visit(out, count);
  }

  double operations() const { return 6.0 * count; }
};

// chosen[row] = the first index of the row's largest logit, best[row] that logit.
struct ArgMax {
  const float* logits;
  int32_t* chosen;
  float* best;
  uint32_t rows;
  uint32_t vocabulary;

  SEALANE_DEVICE size_t items() const { return rows; }
  SEALANE_DEVICE void item(size_t row) const {
    const float* const values = logits + row * vocabulary;
    uint32_t first = 0;
    for (uint32_t v = 1; v < vocabulary; ++v) {
      if (values[v] > values[first]) first = v;
    }
    chosen[row] = static_cast<int32_t>(first);
    best[row] = values[first];
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(logits, size_t{rows} * vocabulary);
    visit(chosen, rows);
    visit(best, rows);
  }

  double operations() const { return 1.0 * rows * vocabulary; }
};

}  // namespace examples
