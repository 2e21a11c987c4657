// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The backward pass of mini_llm's decoder, for low-rank adapters on frozen weights. A gradient
// whose name begins with d_ belongs to the tensor named after it. Rows are the tokens of one
// sequence, in order.
#pragma once

#include "kernels/device_code.h"
#include "kernels/transformer.h"

namespace examples {

// Columns one item of a blocked product computes.
inline constexpr uint32_t kColumns = 16;

// out[row] = scale * in[row] . weights, i.e. the gradient of a Gemm's input; added if `accumulate`.
struct GemmTransposed {
  const float* in;       // [rows][outputs]
  const float* weights;  // [outputs][inputs]
  float* out;            // [rows][inputs]
  uint32_t rows;
  uint32_t inputs;  // a multiple of kColumns
  uint32_t outputs;
  float scale;
  bool accumulate;

  SEALANE_DEVICE size_t items() const { return size_t{rows} * (inputs / kColumns); }
  SEALANE_DEVICE void item(size_t i) const {
    const size_t row = i % rows;
    const size_t column = i / rows * kColumns;
    float sums[kColumns] = {};
    for (uint32_t o = 0; o < outputs; ++o) {
      const float factor = in[row * outputs + o];
      const float* const weight = weights + size_t{o} * inputs + column;
      for (uint32_t c = 0; c < kColumns; ++c) sums[c] += factor * weight[c];
    }
    float* const target = out + row * inputs + column;
    for (uint32_t c = 0; c < kColumns; ++c) {
      target[c] = accumulate ? target[c] + scale * sums[c] : scale * sums[c];
    }
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(in, size_t{rows} * outputs);
    visit(weights, size_t{outputs} * inputs);
    visit(out, size_t{rows} * inputs);
  }

  double operations() const { return 2.0 * rows * inputs * outputs; }
};

// out[a][b] = scale * sum over rows of left[row][a] * right[row][b]: the gradient of weights.
struct GemmOuter {
  const float* left;   // [rows][lefts]
  const float* right;  // [rows][rights]
  float* out;          // [lefts][rights]
  uint32_t rows;
  uint32_t lefts;
  uint32_t rights;
  float scale;

  SEALANE_DEVICE size_t items() const { return size_t{lefts} * rights; }
  SEALANE_DEVICE void item(size_t i) const {
    const size_t a = i / rights;
    const size_t b = i % rights;
    float sum = 0;
    for (size_t row = 0; row < rows; ++row) sum += left[row * lefts + a] * right[row * rights + b];
    out[i] = scale * sum;
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(left, size_t{rows} * lefts);
    visit(right, size_t{rows} * rights);
    visit(out, size_t{lefts} * rights);
  }

  double operations() const { return 2.0 * rows * lefts * rights; }
};

// d_in += the gradient of RmsNorm's input.
struct RmsNormBackward {
  const float* in;
  const float* gain;
  const float* d_out;
  float* d_in;
  uint32_t rows;
  uint32_t width;

  SEALANE_DEVICE size_t items() const { return rows; }
  SEALANE_DEVICE void item(size_t row) const {
    const float* const x = in + row * width;
    const float* const d = d_out + row * width;
    const float scale = inverse_rms(x, width);
    float lanes[kLanes] = {};
    for (uint32_t i = 0; i < width; ++i) lanes[i % kLanes] += d[i] * gain[i] * x[i];
    const float along = add_lanes(lanes) * scale * scale * scale / static_cast<float>(width);
    for (uint32_t i = 0; i < width; ++i) {
      d_in[row * width + i] += d[i] * gain[i] * scale - x[i] * along;
    }
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(in, size_t{rows} * width);
    visit(gain, width);
    visit(d_out, size_t{rows} * width);
    visit(d_in, size_t{rows} * width);
  }

  double operations() const { return 9.0 * rows * width; }
};

// Gradients of queries, keys and values of causal attention within one sequence, where `attended`
// is the forward pass's result. An item is a head; it recomputes the attention weights.
struct AttentionBackward {
  const float* queries;
  const float* keys;
  const float* values;
  const float* attended;
  const float* d_attended;
  float* d_queries;
  float* d_keys;
  float* d_values;
  uint32_t rows;
  uint32_t width;
  uint32_t heads;

  SEALANE_DEVICE size_t items() const { return heads; }

  SEALANE_DEVICE void item(size_t head) const {
    const uint32_t head_width = width / heads;
    const size_t first = head * head_width;
    for (size_t row = 0; row < rows; ++row) {
      for (uint32_t d = 0; d < head_width; ++d) {
        const size_t at = row * width + first + d;
        d_queries[at] = d_keys[at] = d_values[at] = 0;
      }
    }
    for (size_t row = 0; row < rows; ++row) row_backward(row, head, head_width, first);
  }

  SEALANE_DEVICE float score(size_t row, size_t other, size_t head, uint32_t head_width,
                             size_t first) const {
    const float scale = 1.0f / sqrtf(static_cast<float>(head_width));
    const float slope = alibi_slope(static_cast<uint32_t>(head), heads);
    return dot(queries + row * width + first, keys + other * width + first, head_width) * scale -
           slope * static_cast<float>(row - other);
  }

  SEALANE_DEVICE void row_backward(size_t row, size_t head, uint32_t head_width,
                                   size_t first) const {
    float maximum = -INFINITY;
    for (size_t other = 0; other <= row; ++other) {
      maximum = fmaxf(maximum, score(row, other, head, head_width, first));
    }
    float weight_sum = 0;
    for (size_t other = 0; other <= row; ++other) {
      weight_sum += expf(score(row, other, head, head_width, first) - maximum);
    }
    const float scale = 1.0f / sqrtf(static_cast<float>(head_width));
    const size_t at_row = row * width + first;
    const float* const d_row = d_attended + at_row;
    const float mean = dot(d_row, attended + at_row, head_width);
    for (size_t other = 0; other <= row; ++other) {
      const size_t at_other = other * width + first;
      const float weight = expf(score(row, other, head, head_width, first) - maximum) / weight_sum;
      const float d_score = weight * (dot(d_row, values + at_other, head_width) - mean) * scale;
      for (uint32_t d = 0; d < head_width; ++d) {
        d_values[at_other + d] += weight * d_row[d];
        d_queries[at_row + d] += d_score * keys[at_other + d];
        d_keys[at_other + d] += d_score * queries[at_row + d];
      }
    }
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    const size_t count = size_t{rows} * width;
    visit(queries, count);
    visit(keys, count);
    visit(values, count);
    visit(attended, count);
    visit(d_attended, count);
    visit(d_queries, count);
    visit(d_keys, count);
    visit(d_values, count);
  }

  double operations() const { return 7.0 * rows * rows * width; }
};

// Gradients of SiluMul's inputs.
struct SiluMulBackward {
  const float* gate;
  const float* up;
  const float* d_out;
  float* d_gate;
  float* d_up;
  uint32_t count;

  SEALANE_DEVICE size_t items() const { return count; }
  SEALANE_DEVICE void item(size_t i) const {
    const float s = sigmoid(gate[i]);
    d_up[i] = d_out[i] * gate[i] * s;
    d_gate[i] = d_out[i] * up[i] * s * (1.0f + gate[i] * (1.0f - s));
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(gate, count);
    visit(up, count);
    visit(d_out, count);
    visit(d_gate, count);
    visit(d_up, count);
  }

  double operations() const { return 12.0 * count; }
};

// losses[row] = -log softmax(logits[row])[targets[row]]; logits become the gradient of the mean.
struct SoftmaxLoss {
  float* logits;
  const int32_t* targets;
  float* losses;
  uint32_t rows;
  uint32_t vocabulary;

  SEALANE_DEVICE size_t items() const { return rows; }
  SEALANE_DEVICE void item(size_t row) const {
    float* const values = logits + row * vocabulary;
    float maximum = -INFINITY;
    for (uint32_t v = 0; v < vocabulary; ++v) maximum = fmaxf(maximum, values[v]);
    float sum = 0;
    for (uint32_t v = 0; v < vocabulary; ++v) sum += expf(values[v] - maximum);
    const auto target = static_cast<uint32_t>(targets[row]);
    losses[row] = logf(sum) + maximum - values[target];
    for (uint32_t v = 0; v < vocabulary; ++v) {
      const float probability = expf(values[v] - maximum) / sum;
      values[v] = (probability - (v == target ? 1.0f : 0.0f)) / static_cast<float>(rows);
    }
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(logits, size_t{rows} * vocabulary);
    visit(targets, rows);
    visit(losses, rows);
  }

  double operations() const { return 8.0 * rows * vocabulary; }
};

// parameters -= rate * gradients
struct SgdStep {
  float* parameters;
  const float* gradients;
  uint32_t count;
  float rate;

  SEALANE_DEVICE size_t items() const { return count; }
  SEALANE_DEVICE void item(size_t i) const { parameters[i] -= rate * gradients[i]; }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(parameters, count);
    visit(gradients, count);
  }

  double operations() const { return 2.0 * count; }
};

}  // namespace examples
