// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory to measure with: how large the caches are, and buffers that are really there.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"

namespace sealane::bench {

// Of the first CPU. Where the system does not say: 256 KiB and 32 MiB, the least and about the most
// a core of a server has.
struct CacheSizes {
  uint64_t l2_bytes;
  uint64_t last_level_bytes;
};
CacheSizes cache_sizes();

// What can be used without swapping (MemAvailable).
uint64_t available_memory_bytes();

// Private memory, on huge pages where the kernel gives them (asked for all buffers alike, so that
// no variant pays for another's address translation), every page touched. Returned when it dies.
class Buffer {
 public:
  // A usage error if that much is not available.
  static Result<Buffer> make(uint64_t bytes);

  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer();

  MutableBytes bytes() const { return {data_, size_}; }

 private:
  Buffer(uint8_t* data, size_t size) : data_(data), size_(size) {}

  uint8_t* data_;
  size_t size_;
};

}  // namespace sealane::bench
