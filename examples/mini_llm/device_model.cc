// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "mini_llm/device_model.h"

namespace examples {

Activations::Activations(const Shape& shape, uint32_t rows)
    : x(size_t{rows} * shape.hidden),
      normed(x.size()),
      query(x.size()),
      key(x.size()),
      value(x.size()),
      attended(x.size()),
      gate(size_t{rows} * shape.inner()),
      up(gate.size()),
      inner(gate.size()) {}

KvCache::KvCache(const Shape& shape, size_t blocks)
    : shape_(shape),
      block_floats_(size_t{shape.layers} * 2 * kBlockTokens * shape.hidden),
      memory_(blocks * block_floats_) {}

KvView KvCache::layer(uint32_t index, const int32_t* tables, uint32_t columns) const {
  return {memory_.data(),
          tables,
          memory_.size(),
          columns,
          kBlockTokens,
          static_cast<uint32_t>(block_floats_),
          index * 2 * kBlockTokens * shape_.hidden,
          shape_.hidden};
}

DeviceModel::DeviceModel(const Model& model, gpu::Stream stream)
    : shape_(model.shape()),
      stream_(stream),
      embedding_(model.embedding().size()),
      gains_(model.gains().size()) {
  gpu::copy_in(embedding_.data(), model.embedding().data(), embedding_.bytes(), stream);
  gpu::copy_in(gains_.data(), model.gains().data(), gains_.bytes(), stream);
}

void DeviceModel::multiply(const float* in, const float* weights, float* out, uint32_t rows,
                           uint32_t inputs, uint32_t outputs, float scale, bool accumulate) const {
  gpu::launch(Gemm{in, weights, out, rows, inputs, outputs, scale, accumulate}, stream_);
}

void DeviceModel::embed(const Activations& a, const Rows& rows) const {
  gpu::launch(Embed{embedding_.data(), rows.tokens, a.x.data(), rows.count, shape_.hidden,
                    shape_.vocabulary},
              stream_);
}

void DeviceModel::attend(const Activations& a, const Rows& rows, uint32_t layer,
                         const LayerView& weights, const KvView& kv,
                         const LayerAdapters* adapters) const {
  const uint32_t count = rows.count;
  const uint32_t hidden = shape_.hidden;
  const float* const x = a.normed.data();
  gpu::launch(RmsNorm{a.x.data(), gain(2 * layer), a.normed.data(), count, hidden}, stream_);
  multiply(x, weights[Matrix::query], a.query.data(), count, hidden, hidden);
  multiply(x, weights[Matrix::key], a.key.data(), count, hidden, hidden);
  multiply(x, weights[Matrix::value], a.value.data(), count, hidden, hidden);
  if (adapters != nullptr) {
    const LayerAdapters& l = *adapters;
    multiply(x, l.query_down, l.query_middle, count, hidden, l.rank);
    multiply(l.query_middle, l.query_up, a.query.data(), count, l.rank, hidden, l.scale, true);
    multiply(x, l.value_down, l.value_middle, count, hidden, l.rank);
    multiply(l.value_middle, l.value_up, a.value.data(), count, l.rank, hidden, l.scale, true);
  }
  gpu::launch(StoreKv{a.key.data(), a.value.data(), rows.positions, kv, count}, stream_);
  gpu::launch(Attention{a.query.data(), rows.positions, a.attended.data(), kv, count,
                        shape_.heads(), rows.context},
              stream_);
  multiply(a.attended.data(), weights[Matrix::output], a.x.data(), count, hidden, hidden, 1, true);
}

void DeviceModel::mlp(const Activations& a, const Rows& rows, uint32_t layer,
                      const LayerView& weights) const {
  const uint32_t count = rows.count;
  const uint32_t hidden = shape_.hidden;
  const uint32_t inner = shape_.inner();
  gpu::launch(RmsNorm{a.x.data(), gain(2 * layer + 1), a.normed.data(), count, hidden}, stream_);
  multiply(a.normed.data(), weights[Matrix::gate], a.gate.data(), count, hidden, inner);
  multiply(a.normed.data(), weights[Matrix::up], a.up.data(), count, hidden, inner);
  gpu::launch(SiluMul{a.gate.data(), a.up.data(), a.inner.data(), count * inner}, stream_);
  multiply(a.inner.data(), weights[Matrix::down], a.x.data(), count, inner, hidden, 1, true);
}

void DeviceModel::logits(const Activations& a, const Rows& rows, float* logits) const {
  gpu::launch(RmsNorm{a.x.data(), gain(2 * size_t{shape_.layers}), a.normed.data(), rows.count,
                      shape_.hidden},
              stream_);
  multiply(a.normed.data(), embedding_.data(), logits, rows.count, shape_.hidden,
           shape_.vocabulary);
}

LayerStream::LayerStream(const Model& model, gpu::Stream compute)
    : model_(model), compute_(compute) {
  for (Slot& slot : slots_) {
    slot.memory = gpu::DeviceBuffer<float>(layer_floats(model.shape()));
    slot.loaded = gpu::make_event();
    slot.used = gpu::make_event();
  }
}

LayerStream::~LayerStream() {
  for (Slot& slot : slots_) {
    gpu::destroy(slot.loaded);
    gpu::destroy(slot.used);
  }
  gpu::destroy(copies_);
}

void LayerStream::load(size_t turn, size_t layer) {
  Slot& slot = slots_[turn % 2];
  if (turn >= 2) gpu::wait(copies_, slot.used);
  const LayerView from = model_.layer(layer);
  const LayerView to(model_.shape(), slot.memory.data());
  for (size_t m = 0; m < kMatrices; ++m) {
    const auto matrix = static_cast<Matrix>(m);
    const size_t bytes = matrix_floats(model_.shape(), matrix) * sizeof(float);
    gpu::copy_in(to[matrix], from[matrix], bytes, copies_);
    bytes_sent_ += bytes;
  }
  gpu::record(slot.loaded, copies_);
}

LayerView LayerStream::take(size_t turn) {
  Slot& slot = slots_[turn % 2];
  gpu::wait(compute_, slot.loaded);
  return {model_.shape(), slot.memory.data()};
}

void LayerStream::give_back(size_t turn) { gpu::record(slots_[turn % 2].used, compute_); }

}  // namespace examples
