// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Are these the bytes that were sealed? A digest under a key that is made here and never leaves the
// process, for comparing memory with itself at another time, and a message with what was sealed for
// it: whoever writes the memory does not know the key, so a universal hash will do, which is as
// fast as memory can be read. Not a MAC: nobody else is ever shown a digest.
//
// UMAC's NH over blocks of 4 KiB, twice, the second time with a shifted key, then a polynomial over
// 2^61 - 1 in each. Two different messages of up to 16 MiB have the same digest with a probability
// below 2^-48.
//
// Immutable once made; any number of threads.
#pragma once

#include <array>
#include <cstdint>

namespace sealane::serve {

class SourceDigest {
 public:
  static constexpr uint64_t kBlockBytes = 4096;

  struct Value {
    std::array<uint64_t, 2> sums{};
    bool operator==(const Value&) const = default;
  };

  SourceDigest();  // with a key of its own

  Value of(const uint8_t* bytes, uint64_t count) const;

  // The same in pieces: whole blocks each, but the last.
  void add(Value& running, const uint8_t* bytes, uint64_t count) const;

 private:
  static constexpr uint64_t kShift = 16;  // bytes, between the two passes
  void add_block(Value& running, const uint8_t* block, uint64_t whole_bytes) const;

  alignas(64) std::array<uint8_t, kBlockBytes + kShift> key_{};
  std::array<uint64_t, 2> points_{};
};

}  // namespace sealane::serve
