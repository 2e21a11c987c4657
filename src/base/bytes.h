// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Views of memory, fixed-width loads and stores, and the two operations secrets need: a comparison
// whose time does not depend on the content, and a wipe the compiler cannot remove.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace sealane {

using Bytes = std::span<const uint8_t>;
using MutableBytes = std::span<uint8_t>;

constexpr uint64_t operator""_KiB(unsigned long long n) { return n << 10; }
constexpr uint64_t operator""_MiB(unsigned long long n) { return n << 20; }
constexpr uint64_t operator""_GiB(unsigned long long n) { return n << 30; }

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Little-endian, any alignment.
template <typename Int>
Int load_le(const uint8_t* from) {
  static_assert(std::is_unsigned_v<Int>);
  Int value = 0;
  for (size_t i = 0; i < sizeof(Int); ++i) value |= static_cast<Int>(Int{from[i]} << (8 * i));
  return value;
}

template <typename Int>
void store_le(uint8_t* to, Int value) {
  static_assert(std::is_unsigned_v<Int>);
  for (size_t i = 0; i < sizeof(Int); ++i) to[i] = static_cast<uint8_t>(value >> (8 * i));
}

// A private copy of memory that others may write meanwhile; both have the same size. What is
// checked in the copy is what is used: the compiler cannot go back to the source.
inline void copy_from_shared(Bytes from, MutableBytes to) {
  if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
  asm volatile("" : : "r"(to.data()) : "memory");
}

// True if both have the same size and content; the time depends on the size alone.
bool constant_time_equal(Bytes a, Bytes b);

// Overwrites it, also where the compiler sees no reader, and the vector registers it went through.
void wipe(MutableBytes secret);

}  // namespace sealane
