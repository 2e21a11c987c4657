// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes in rows and slices: what 2D and 3D copies move. Offsets count the bytes of the rows alone,
// as if they were packed. Plain value; whoever uses one sees to it that the memory stays.
#pragma once

#include <cstdint>
#include <cstring>

namespace sealane::emu {

struct Strided {
  uint8_t* base = nullptr;
  uint64_t width = 0;  // bytes of a row
  uint64_t height = 1;
  uint64_t depth = 1;
  uint64_t pitch = 0;  // from row to row
  uint64_t slice = 0;  // from slice to slice

  static Strided flat(void* memory, uint64_t bytes) {
    return {static_cast<uint8_t*>(memory), bytes, 1, 1, bytes, bytes};
  }

  uint64_t bytes() const { return width * height * depth; }
  // From the first byte to behind the last.
  uint64_t extent() const {
    return bytes() == 0 ? 0 : (depth - 1) * slice + (height - 1) * pitch + width;
  }
  bool contiguous() const {
    return (height == 1 || pitch == width) && (depth == 1 || slice == width * height);
  }
  uint8_t* at(uint64_t offset) const {
    const uint64_t row = offset / width;
    return base + row / height * slice + row % height * pitch + offset % width;
  }

  // Calls visit(memory, bytes) for each run of bytes in [offset, offset + count).
  template <typename Visit>
  void runs(uint64_t offset, uint64_t count, Visit&& visit) const {
    if (contiguous()) return visit(base + offset, count);
    while (count > 0) {
      const uint64_t left = width - offset % width;
      const uint64_t run = left < count ? left : count;
      visit(at(offset), run);
      offset += run;
      count -= run;
    }
  }

  void gather(uint64_t offset, uint64_t count, uint8_t* out) const {
    runs(offset, count, [&](const uint8_t* from, uint64_t run) {
      std::memcpy(out, from, run);
      out += run;
    });
  }

  void scatter(uint64_t offset, uint64_t count, const uint8_t* in) const {
    runs(offset, count, [&](uint8_t* to, uint64_t run) {
      std::memcpy(to, in, run);
      in += run;
    });
  }
};

// Same shape on both sides; overlapping flat ranges are moved correctly.
inline void copy_strided(const Strided& from, const Strided& to) {
  if (from.bytes() == 0) return;
  if (from.contiguous() && to.contiguous()) {
    std::memmove(to.base, from.base, from.bytes());
    return;
  }
  uint64_t offset = 0;
  to.runs(0, to.bytes(), [&](uint8_t* out, uint64_t run) {
    from.gather(offset, run, out);
    offset += run;
  });
}

}  // namespace sealane::emu
