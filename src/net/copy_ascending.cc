// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/copy_ascending.h"

#include <cstring>

#include "base/cpu.h"

// A sanitizer does not see what an instruction written out stores.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>
#define SEALANE_STORES_SIXTEEN 1
#endif

namespace sealane::net {
namespace {

void put_byte(const uint8_t* from, uint8_t* to) { __atomic_store_n(to, *from, __ATOMIC_RELAXED); }

void put_eight(const uint8_t* from, uint8_t* to) {
  uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  __atomic_store_n(reinterpret_cast<uint64_t*>(to), word, __ATOMIC_RELEASE);
}

bool aligned(const uint8_t* to, size_t bytes) {
  return reinterpret_cast<uintptr_t>(to) % bytes == 0;
}

#ifdef SEALANE_STORES_SIXTEEN
// One access on every CPU that has AVX, by the word of Intel and of AMD, and stores are seen in
// order; half as many of them as of eight.
bool sixteen_at_once() {
  static const bool has = cpu_has(CpuFeature::avx);
  return has;
}

void put_sixteen(const uint8_t* from, uint8_t* to) {
  const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  // Volatile: neither merged with another nor moved past one.
  asm volatile("movdqa %1, %0" : "=m"(*reinterpret_cast<__m128i*>(to)) : "x"(words) : "memory");
}
#else
bool sixteen_at_once() { return false; }
void put_sixteen(const uint8_t*, uint8_t*) {}
#endif

}  // namespace

void copy_ascending(Bytes from, uint8_t* to) {
  const size_t most = sixteen_at_once() ? 16 : 8;
  size_t at = 0;
  for (; at < from.size() && !aligned(to + at, 8); ++at) put_byte(&from[at], to + at);
  for (; at + 8 <= from.size() && !aligned(to + at, most); at += 8) put_eight(&from[at], to + at);
  for (; most == 16 && at + 16 <= from.size(); at += 16) put_sixteen(&from[at], to + at);
  for (; at + 8 <= from.size(); at += 8) put_eight(&from[at], to + at);
  for (; at < from.size(); ++at) put_byte(&from[at], to + at);
}

}  // namespace sealane::net
