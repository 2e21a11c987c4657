// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// PTX's types and state spaces.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string_view>

namespace sealane::ptx {

enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  u16x2,
  s16x2,
  f16,
  f16x2,
  bf16,
  bf16x2,
  tf32,
  e4m3x2,
  e5m2x2,
  f32,
  f64,
  f32x2,
};

enum class Space : uint8_t { generic, global, shared, local, param, constant };

Type type_named(std::string_view name);  // without the dot; none: no type
unsigned bytes_of(Type type);            // of a value; 4 for pred

inline bool is_signed(Type type) { return type >= Type::s8 && type <= Type::s64; }
inline bool is_unsigned(Type type) { return type >= Type::u8 && type <= Type::u64; }
inline bool is_bits(Type type) { return type >= Type::b8 && type <= Type::b128; }
inline bool is_integer(Type type) { return is_signed(type) || is_unsigned(type) || is_bits(type); }
inline bool is_float(Type type) { return type >= Type::f16; }

// Generic addresses: what is neither of these is global memory, where addresses of the process are.
constexpr uint64_t kSharedWindow = uint64_t{1} << 48;
constexpr uint64_t kLocalWindow = uint64_t{2} << 48;
constexpr uint64_t kParamWindow = uint64_t{4} << 48;
constexpr uint64_t kFunctionWindow = uint64_t{8} << 48;  // plus 16 times the function's number + 1

}  // namespace sealane::ptx
