// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a step as CUDA graphs, one for each of vLLM's sizes: 1, 2, 4, then every 8 rows to
// 256, then every 16 to 512. A step is padded to the next one; what is larger has no graph. Not
// synchronised.
#pragma once

#include <cstddef>
#include <map>

#include "support/gpu.h"

namespace examples {

class StepGraphs {
 public:
  static constexpr size_t kRowsMax = 512;

  explicit StepGraphs(gpu::Stream stream) : stream_(stream) {}
  ~StepGraphs() {
    for (const auto& [rows, graph] : graphs_) gpu::destroy(graph);
  }
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // The size that `rows` rows take; their number if there is none.
  static size_t padded(size_t rows) {
    if (rows <= 2 || rows > kRowsMax) return rows;
    if (rows <= 4) return 4;
    const size_t stride = rows <= 256 ? 8 : 16;
    return (rows + stride - 1) / stride * stride;
  }

  // `step(rows)` launches a step of so many rows; called for every size that up to `rows_max` take.
  template <typename Step>
  void capture(size_t rows_max, Step&& step) {
    for (size_t rows = 1; rows <= rows_max && rows <= kRowsMax; rows = padded(rows + 1)) {
      graphs_[rows] = gpu::capture(stream_, [&] { step(rows); });
    }
  }

  // Of the size that so many rows take; nullptr: there is none.
  gpu::Graph find(size_t rows) const {
    const auto found = graphs_.find(padded(rows));
    return found != graphs_.end() ? found->second : nullptr;
  }

 private:
  gpu::Stream stream_;
  std::map<size_t, gpu::Graph> graphs_;
};

}  // namespace examples
