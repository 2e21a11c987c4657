// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// nccl-tests' flags for the sizes of messages, as `bench nccl` and the collectives have them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace sealane::cli {

// Of -w: before anything is measured nobody waits for hours.
constexpr uint32_t kWarmupMost = 1'000'000;

struct MessageSizes {
  uint64_t min_bytes = 64_KiB;
  uint64_t max_bytes = 64_MiB;
  uint32_t factor = 4;  // at least 2
  uint32_t iterations = 20;
};

inline Result<std::vector<uint64_t>> message_sizes(const MessageSizes& flags) {
  if (flags.min_bytes > flags.max_bytes) {
    return usage_error("-e is smaller than -b: there is nothing to measure");
  }
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = flags.min_bytes; bytes <= flags.max_bytes; bytes *= flags.factor) {
    sizes.push_back(bytes);
  }
  return sizes;
}

}  // namespace sealane::cli
