// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "mini_llm/batch.h"

#include <algorithm>

namespace examples {

Batch::Batch(const Shape& shape, size_t rows_max, size_t columns)
    : vocabulary_(shape.vocabulary),
      columns_(columns),
      tokens_(rows_max),
      positions_(rows_max),
      tables_(rows_max * columns),
      best_(rows_max),
      device_tokens_(rows_max),
      device_positions_(rows_max),
      device_tables_(rows_max * columns),
      device_logits_(rows_max * shape.vocabulary),
      device_best_(rows_max) {}

size_t Batch::add(int32_t token, size_t position, const std::vector<int32_t>& blocks) {
  const size_t row = count_++;
  tokens_[row] = token;
  positions_[row] = static_cast<int32_t>(position);
  int32_t* const table = &tables_[row * columns_];
  std::fill(std::copy(blocks.begin(), blocks.end(), table), table + columns_, 0);
  context_ = std::max(context_, position + 1);
  return row;
}

void Batch::pad(size_t rows) {
  while (count_ < rows) {
    const size_t row = count_++;
    tokens_[row] = 0;
    positions_[row] = -1;
    std::fill_n(&tables_[row * columns_], columns_, 0);
  }
}

Rows Batch::rows(size_t count, size_t context) const {
  return {device_tokens_.data(), device_positions_.data(), static_cast<uint32_t>(count),
          static_cast<uint32_t>(context)};
}

Rows Batch::send(gpu::Stream stream) {
  const size_t bytes = count_ * sizeof(int32_t);
  gpu::copy_in(device_tokens_.data(), tokens_.data(), bytes, stream);
  gpu::copy_in(device_positions_.data(), positions_.data(), bytes, stream);
  gpu::copy_in(device_tables_.data(), tables_.data(), bytes * columns_, stream);
  return rows(count_, context_);
}

void Batch::choose(const DeviceModel& model, const Activations& activations, const Rows& rows,
                   gpu::Stream stream) {
  model.logits(activations, rows, device_logits_.data());
  gpu::launch(ArgMax{device_logits_.data(), device_tokens_.data(), device_best_.data(), rows.count,
                     vocabulary_},
              stream);
  gpu::copy_out(tokens_.data(), device_tokens_.data(), rows.count * sizeof(int32_t), stream);
  gpu::copy_out(best_.data(), device_best_.data(), rows.count * sizeof(float), stream);
  gpu::synchronize(stream);
}

}  // namespace examples
