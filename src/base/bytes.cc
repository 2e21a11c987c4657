// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/bytes.h"

#include <string.h>

#include <algorithm>

#include "base/registers.h"

namespace sealane {

bool constant_time_equal(Bytes a, Bytes b) {
  if (a.size() != b.size()) return false;
  uint64_t difference = 0;
  for (size_t at = 0; at < a.size(); at += sizeof difference) {
    const size_t count = std::min(sizeof difference, a.size() - at);
    uint64_t x = 0;
    uint64_t y = 0;
    std::memcpy(&x, a.data() + at, count);
    std::memcpy(&y, b.data() + at, count);
    difference |= x ^ y;
    asm volatile("" : "+r"(difference));  // nobody learns from it before the end
  }
  return difference == 0;
}

void wipe(MutableBytes secret) {
  if (!secret.empty()) explicit_bzero(secret.data(), secret.size());
  clear_vector_registers();
}

}  // namespace sealane
