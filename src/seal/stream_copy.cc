// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "seal/stream_copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/cpu.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace sealane {
namespace {

#ifdef __x86_64__

constexpr size_t kLineBytes = 64;

// The copy_lines_* move whole cache lines to a destination that begins at one. Each fills a line
// without other stores in between, so that it leaves the core as one full write.

void copy_lines_sse2(uint8_t* to, const uint8_t* from, size_t lines) {
  for (; lines > 0; --lines, to += kLineBytes, from += kLineBytes) {
    const auto* in = reinterpret_cast<const __m128i*>(from);
    auto* out = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
}

[[gnu::target("avx2")]] void copy_lines_avx2(uint8_t* to, const uint8_t* from, size_t lines) {
  for (; lines > 0; --lines, to += kLineBytes, from += kLineBytes) {
    const auto* in = reinterpret_cast<const __m256i*>(from);
    auto* out = reinterpret_cast<__m256i*>(to);
    const __m256i a = _mm256_loadu_si256(in);
    const __m256i b = _mm256_loadu_si256(in + 1);
    _mm256_stream_si256(out, a);
    _mm256_stream_si256(out + 1, b);
  }
}

[[gnu::target("avx512f")]] void copy_lines_avx512(uint8_t* to, const uint8_t* from, size_t lines) {
  for (; lines > 0; --lines, to += kLineBytes, from += kLineBytes) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
}

// The bytes before the destination's first whole line and after its last go by memcpy.
template <auto copy_lines>
void copy_with(MutableBytes to, Bytes from) {
  SEALANE_CHECK(to.size() == from.size(), "stream_copy: sizes differ");
  if (to.empty()) return;
  const size_t past_line = reinterpret_cast<uintptr_t>(to.data()) % kLineBytes;
  const size_t head = std::min((kLineBytes - past_line) % kLineBytes, to.size());
  const size_t lines = (to.size() - head) / kLineBytes;
  const size_t tail = head + lines * kLineBytes;
  std::memcpy(to.data(), from.data(), head);
  copy_lines(to.data() + head, from.data() + head, lines);
  std::memcpy(to.data() + tail, from.data() + tail, to.size() - tail);
}

// Each flush waits for the one before: milliseconds for a MiB. Those that do not are as old as
// AVX512, and take a fiftieth.
void flush_lines(Bytes bytes) {
  for (size_t at = 0; at < bytes.size(); at += kLineBytes) _mm_clflush(bytes.data() + at);
}
[[gnu::target("clflushopt")]] void flush_lines_unordered(Bytes bytes) {
  for (size_t at = 0; at < bytes.size(); at += kLineBytes) {
    _mm_clflushopt(const_cast<uint8_t*>(bytes.data() + at));
  }
}
bool can_flush_unordered() {
  constexpr unsigned kClflushopt = 1u << 23;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kClflushopt) != 0;
}

std::vector<StreamCopyPath> find_paths() {
  std::vector<StreamCopyPath> paths;
  if (cpu_has(CpuFeature::avx512)) paths.push_back({"avx512", copy_with<copy_lines_avx512>});
  if (cpu_has(CpuFeature::avx2)) paths.push_back({"avx2", copy_with<copy_lines_avx2>});
  paths.push_back({"sse2", copy_with<copy_lines_sse2>});
  return paths;
}

#else

void copy_plainly(MutableBytes to, Bytes from) {
  SEALANE_CHECK(to.size() == from.size(), "stream_copy: sizes differ");
  if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
}

std::vector<StreamCopyPath> find_paths() { return {{"memcpy", copy_plainly}}; }

#endif

}  // namespace

std::span<const StreamCopyPath> stream_copy_paths() {
  // Never freed: threads may still publish while the process exits.
  static const auto& paths = *new std::vector<StreamCopyPath>(find_paths());
  return paths;
}

void stream_copy_unordered(MutableBytes to, Bytes from) {
  static const auto copy = stream_copy_paths().front().copy;
  copy(to, from);
}

void stream_fence() {
#ifdef __x86_64__
  _mm_sfence();  // non-temporal stores are ordered with nothing else
#else
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

void evict(Bytes bytes) {
#ifdef __x86_64__
  static const auto flush = can_flush_unordered() ? flush_lines_unordered : flush_lines;
  flush(bytes);
  _mm_mfence();
#else
  static_cast<void>(bytes);
#endif
}

void stream_copy(MutableBytes to, Bytes from) {
  stream_copy_unordered(to, from);
  stream_fence();
}

}  // namespace sealane
