// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One body, compiled for several instruction sets; which one serves is decided at run time. Without
// fused multiply-add (-ffp-contract=off) all of them round alike.

#include "kernels/host_dot.h"

#include <cstring>

#include "kernels/device_code.h"

namespace examples {

namespace {

typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

[[gnu::always_inline]] inline float dot_body(const float* a, const float* b, uint32_t count) {
  Lanes sums = {};
  uint32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Lanes x;
    Lanes y;
    std::memcpy(&x, a + i, sizeof x);
    std::memcpy(&y, b + i, sizeof y);
    sums += x * y;
  }
  float lanes[kLanes];
  std::memcpy(lanes, &sums, sizeof lanes);
  for (; i < count; ++i) lanes[i % kLanes] += a[i] * b[i];
  return add_lanes(lanes);
}

using Dot = float (*)(const float* a, const float* b, uint32_t count);

float dot_baseline(const float* a, const float* b, uint32_t count) { return dot_body(a, b, count); }

#if defined(__x86_64__)
[[gnu::target("avx2")]] float dot_avx2(const float* a, const float* b, uint32_t count) {
  return dot_body(a, b, count);
}

[[gnu::target("avx512f")]] float dot_avx512(const float* a, const float* b, uint32_t count) {
  return dot_body(a, b, count);
}

Dot choose() {
  if (__builtin_cpu_supports("avx512f")) return dot_avx512;
  if (__builtin_cpu_supports("avx2")) return dot_avx2;
  return dot_baseline;
}
#else
Dot choose() { return dot_baseline; }
#endif

}  // namespace

float host_dot(const float* a, const float* b, uint32_t count) {
  static const Dot chosen = choose();
  return chosen(a, b, count);
}

}  // namespace examples
