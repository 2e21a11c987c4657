// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What kernels share: the mark that makes nvcc compile a function for the GPU, and sums of a fixed
// order that a compiler can still vectorise.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/host_dot.h"

#if defined(__CUDACC__)
#define SEALANE_DEVICE __host__ __device__
#else
#define SEALANE_DEVICE
#endif

namespace examples {

// Accumulators of a sum: element i goes to lane i % kLanes, then the lanes are added pairwise.
inline constexpr int kLanes = 16;

SEALANE_DEVICE inline float add_lanes(float* lanes) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

SEALANE_DEVICE inline float dot(const float* a, const float* b, uint32_t count) {
#if defined(__CUDACC__)
  float lanes[kLanes] = {};
  for (uint32_t i = 0; i < count; ++i) lanes[i % kLanes] += a[i] * b[i];
  return add_lanes(lanes);
#else
  return host_dot(a, b, count);
#endif
}

SEALANE_DEVICE inline uint32_t mix(uint32_t a, uint32_t b) {
  uint32_t mixed = a * 0x9e3779b1u ^ (b + 0x7f4a7c15u + (a << 6) + (a >> 2));
  mixed = (mixed ^ (mixed >> 15)) * 0x85ebca6bu;
  return mixed ^ (mixed >> 13);
}

}  // namespace examples
