// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Large language models as sizes and as work: what their layers weigh, what a token leaves in the
// KV cache, and how long a GPU computes by its roofline. Sizes follow from the architecture, in
// 16-bit numbers.
//
// Plain values and pure functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/time.h"

namespace sealane::workload {

struct Model {
  std::string_view name;
  uint32_t layers = 0;
  uint64_t hidden = 0;
  uint64_t kv_hidden = 0;  // less than `hidden` where heads share keys and values
  uint64_t feed_forward = 0;
  bool gated = false;  // three feed-forward matrices instead of two
  uint64_t vocabulary = 0;
  uint64_t positions = 0;       // learned position embeddings; 0: computed ones
  bool tied_embedding = false;  // input and output share one matrix

  uint64_t layer_parameters() const;
  uint64_t layer_bytes() const { return 2 * layer_parameters(); }
  uint64_t embedding_bytes() const;  // everything outside the layers
  uint64_t bytes() const { return layers * layer_bytes() + embedding_bytes(); }
  uint64_t kv_bytes_per_token_and_layer() const { return 2 * 2 * kv_hidden; }
  uint64_t kv_bytes_per_token() const { return layers * kv_bytes_per_token_and_layer(); }
};

std::span<const Model> models();
const Model* find_model(std::string_view name);  // nullptr if there is none of that name

// A GPU as far as a program's kernels are concerned, and the memory that models have to fit into.
struct Roofline {
  double flops_per_s = 0;  // reached, not the peak
  double bytes_per_s = 0;
  uint64_t gpu_bytes = 0;
  uint64_t host_bytes = 0;
};

// What one pass through the layers works on.
struct Batch {
  uint64_t tokens = 0;   // new ones
  uint64_t context = 0;  // cached tokens that are read
  uint64_t pairs = 0;    // a new token attends to a cached one

  // One new token for each sequence; `context` is that of all together.
  static Batch decode(uint64_t sequences, uint64_t context) {
    return {sequences, context, context};
  }
  static Batch prefill(uint64_t sequences, uint64_t length) {
    return {sequences * length, sequences * length, sequences * length * (length + 1) / 2};
  }
};

Duration layer_time(const Model& model, const Roofline& gpu, const Batch& batch);

// All layers and the output matrix.
Duration step_time(const Model& model, const Roofline& gpu, const Batch& batch);

}  // namespace sealane::workload
