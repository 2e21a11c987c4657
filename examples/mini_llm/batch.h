// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one pass, on their way to the device and back: a few small copies per step, as every
// engine makes them.
#pragma once

#include <vector>

#include "mini_llm/device_model.h"
#include "mini_llm/schedule.h"

namespace examples {

class Batch {
 public:
  // `columns`: blocks a sequence can have.
  Batch(const Shape& shape, size_t rows_max, size_t columns);

  void clear() { count_ = context_ = 0; }
  // Returns the row's number. `blocks` are those of its sequence.
  size_t add(int32_t token, size_t position, const std::vector<int32_t>& blocks);

  // Fills up to `rows` with rows that are of no sequence and leave nothing behind.
  void pad(size_t rows);

  size_t count() const { return count_; }
  // Sends tokens, positions and block tables. The batch stays unchanged until the stream is done.
  Rows send(gpu::Stream stream);
  // The first rows, as the device has them.
  Rows rows(size_t count, size_t context) const;
  KvView kv(const KvCache& cache, uint32_t layer) const {
    return cache.layer(layer, device_tables_.data(), static_cast<uint32_t>(columns_));
  }

  // Lets every row choose its next token and waits for the choices.
  void choose(const DeviceModel& model, const Activations& activations, const Rows& rows,
              gpu::Stream stream);
  Choice choice(size_t row) const { return {tokens_[row], best_[row]}; }

 private:
  const uint32_t vocabulary_;
  const size_t columns_;
  size_t count_ = 0;
  size_t context_ = 0;
  gpu::PinnedBuffer<int32_t> tokens_, positions_, tables_;
  gpu::PinnedBuffer<float> best_;
  gpu::DeviceBuffer<int32_t> device_tokens_, device_positions_, device_tables_;
  gpu::DeviceBuffer<float> device_logits_, device_best_;
};

}  // namespace examples
