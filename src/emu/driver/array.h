// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// CUDA arrays: device memory without an address, which copies reach by position. There are neither
// textures nor surfaces, so an array's rows lie in order and nothing but copies uses them. Inside,
// an array's part is a range of device memory like any other: whatever a copy crosses, it crosses
// in the same way.
#pragma once

#include "emu/driver/objects.h"

namespace sealane::emu {

// In an array: bytes from the beginning of a row, rows, slices.
struct ArrayPosition {
  uint64_t x = 0;
  uint64_t y = 0;
  uint64_t z = 0;
};

// The part of an array that a copy of these extents begins at; INVALID_VALUE if it does not lie
// inside or cuts an element.
CUresult array_side(const Driver& d, CUarray handle, const ArrayPosition& at,
                    const CopyOperation& copy, CopySide& out);

// Where in its array a side begins.
inline ArrayPosition position_of(const CopySide& side) {
  const uint64_t in_slice = side.array_offset % side.slice;
  return {in_slice % side.pitch, in_slice / side.pitch, side.array_offset / side.slice};
}

}  // namespace sealane::emu
