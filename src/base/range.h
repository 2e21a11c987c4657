// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A piece of memory by its numbers, to be compared and never followed.
#pragma once

#include <compare>
#include <cstdint>

namespace sealane {

// [address, address + bytes) of host memory.
struct Range {
  uint64_t address = 0;
  uint64_t bytes = 0;

  uint64_t end() const { return address + bytes; }
  bool overlaps(const Range& other) const { return address < other.end() && other.address < end(); }
  bool contains(const Range& other) const {
    return address <= other.address && other.end() <= end();
  }
  auto operator<=>(const Range&) const = default;
};

}  // namespace sealane
