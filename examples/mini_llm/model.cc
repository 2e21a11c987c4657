// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "mini_llm/model.h"

#include <cmath>

#include "support/random.h"

namespace examples {

namespace {

// Uniform with the variance that keeps activations near one.
void fill(const gpu::PinnedBuffer<float>& buffer, Random& random, float range, float offset = 0) {
  for (size_t i = 0; i < buffer.size(); ++i) buffer[i] = offset + random.real(range);
}

}  // namespace

size_t matrix_floats(const Shape& shape, Matrix matrix) {
  const bool in_mlp = matrix == Matrix::gate || matrix == Matrix::up || matrix == Matrix::down;
  return size_t{shape.hidden} * (in_mlp ? shape.inner() : shape.hidden);
}

size_t layer_floats(const Shape& shape) {
  size_t floats = 0;
  for (size_t m = 0; m < kMatrices; ++m) floats += matrix_floats(shape, static_cast<Matrix>(m));
  return floats;
}

LayerView::LayerView(const Shape& shape, float* memory) {
  for (size_t m = 0; m < kMatrices; ++m) {
    matrices_[m] = memory;
    memory += matrix_floats(shape, static_cast<Matrix>(m));
  }
}

Model::Model(const Shape& shape, uint64_t seed)
    : shape_(shape),
      matrices_(shape.layers * layer_floats(shape)),
      embedding_(size_t{shape.vocabulary} * shape.hidden),
      gains_((2 * size_t{shape.layers} + 1) * shape.hidden) {
  Random random(seed);
  const float range = std::sqrt(3.0f / static_cast<float>(shape.hidden));
  fill(matrices_, random, range);
  fill(embedding_, random, 2 * range);
  fill(gains_, random, 0.1f, 1.0f);
}

LayerView Model::layer(size_t index) const {
  return {shape_, matrices_.data() + index * layer_floats(shape_)};
}

}  // namespace examples
