// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The model: a decoder-only transformer with RMS norms, causal attention with ALiBi, a gated MLP
// and tied embeddings; fp32, random weights from a seed. Weights live in pinned host memory: the
// matrices of a layer are what the schedules stream or keep on the device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "support/gpu.h"

namespace examples {

inline constexpr uint32_t kHeadWidth = kHeadWidthMax;

struct Shape {
  uint32_t layers;
  uint32_t hidden;  // a multiple of kHeadWidth
  uint32_t vocabulary = 1024;

  uint32_t heads() const { return hidden / kHeadWidth; }
  uint32_t inner() const { return (hidden * 8 / 3 + 63) / 64 * 64; }
};

// The matrices of a layer, in the order they are stored and sent.
enum class Matrix { query, key, value, output, gate, up, down };
inline constexpr size_t kMatrices = 7;

size_t matrix_floats(const Shape& shape, Matrix matrix);
size_t layer_floats(const Shape& shape);

// A layer's matrices, one after the other, in host or device memory.
class LayerView {
 public:
  LayerView(const Shape& shape, float* memory);
  float* operator[](Matrix matrix) const { return matrices_[static_cast<size_t>(matrix)]; }

 private:
  std::array<float*, kMatrices> matrices_;
};

class Model {
 public:
  Model(const Shape& shape, uint64_t seed);

  const Shape& shape() const { return shape_; }
  LayerView layer(size_t index) const;
  uint64_t matrix_bytes() const { return matrices_.bytes(); }  // of all layers

  const gpu::PinnedBuffer<float>& embedding() const { return embedding_; }
  // Gains of the norms: two per layer, then the last one.
  const gpu::PinnedBuffer<float>& gains() const { return gains_; }

 private:
  Shape shape_;
  gpu::PinnedBuffer<float> matrices_;
  gpu::PinnedBuffer<float> embedding_;
  gpu::PinnedBuffer<float> gains_;
};

}  // namespace examples
