// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Models that people train, as the list of their parameter tensors, and the buckets in which
// PyTorch's DistributedDataParallel reduces their gradients.
//
// Plain values and pure functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace sealane::workload {

struct TrainingModel {
  std::string_view name;
  std::string_view what;
  double sample_tflop = 0;             // forward and backward, one sample
  uint64_t batch = 0;                  // samples per GPU, the usual
  std::vector<uint64_t> (*tensors)();  // parameters of each, in the order of the model's definition

  uint64_t gradient_bytes() const;  // fp32
};

std::span<const TrainingModel> training_models();
const TrainingModel* find_training_model(std::string_view name);

constexpr uint64_t kBucketBytesDefault = 25_MiB;

// Bytes of each bucket, in the order they become ready: fp32 gradients in reverse order of the
// parameters, a bucket is closed when it has reached its cap, the first cap is 1 MiB.
std::vector<uint64_t> gradient_buckets(const TrainingModel& model, uint64_t cap_bytes);

}  // namespace sealane::workload
