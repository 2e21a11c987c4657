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
  // By differences: a program may name a length that, added to an address, comes out below it.
  bool overlaps(const Range& other) const {
    return bytes != 0 && other.bytes != 0 &&
           (other.address >= address ? other.address - address < bytes
                                     : address - other.address < other.bytes);
  }
  bool contains(const Range& other) const {
    return other.address >= address && other.bytes <= bytes &&
           other.address - address <= bytes - other.bytes;
  }
  auto operator<=>(const Range&) const = default;
};

}  // namespace sealane
