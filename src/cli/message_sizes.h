// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// nccl-tests' flags for the sizes of messages, as `bench nccl` and the collectives have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/byte_count.h"
#include "base/result.h"

namespace sealane::cli {

struct MessageSizes {
  std::string min_bytes = "64K";
  std::string max_bytes = "64M";
  uint32_t factor = 4;
  uint32_t iterations = 20;
};

inline Result<std::vector<uint64_t>> message_sizes(const MessageSizes& flags, uint64_t most) {
  const auto first = parse_byte_count(flags.min_bytes, most);
  if (!first) return usage_error("-b: " + first.error().message);
  const auto last = parse_byte_count(flags.max_bytes, most);
  if (!last) return usage_error("-e: " + last.error().message);
  if (*first > *last) return usage_error("-e is smaller than -b: there is nothing to measure");
  if (flags.factor < 2) return usage_error("-f: sizes must grow by a factor of 2 or more");
  if (flags.iterations == 0) return usage_error("-n: at least one iteration is needed");
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = *first; bytes <= *last; bytes *= flags.factor) sizes.push_back(bytes);
  return sizes;
}

}  // namespace sealane::cli
