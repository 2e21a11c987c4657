// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A model's layers in host memory, as the copies that bring them to the device: one per large
// tensor, and one for the small ones together.
#pragma once

#include <vector>

#include "workload/model.h"
#include "workload/operation.h"

namespace sealane::workload {

// Bytes of a layer's tensors, in the order they are used.
inline std::vector<uint64_t> layer_tensors(const Model& model) {
  const uint64_t square = 2 * model.hidden * model.hidden;
  const uint64_t kv = 2 * model.hidden * model.kv_hidden;
  const uint64_t mlp = 2 * model.hidden * model.feed_forward;
  std::vector<uint64_t> tensors{square, kv, kv, square, mlp, mlp};
  if (model.gated) tensors.push_back(mlp);
  uint64_t large = 0;
  for (const uint64_t bytes : tensors) large += bytes;
  tensors.push_back(model.layer_bytes() - large);
  return tensors;
}

// The first `bytes` of the layer's tensors are on the host.
inline std::vector<uint64_t> offloaded_tensors(const Model& model, double share) {
  auto left = static_cast<uint64_t>(share * static_cast<double>(model.layer_bytes()));
  std::vector<uint64_t> tensors;
  for (const uint64_t bytes : layer_tensors(model)) {
    const uint64_t part = std::min(bytes, left);
    if (part > 0) tensors.push_back(part);
    left -= part;
  }
  return tensors;
}

}  // namespace sealane::workload
