// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What both sides compute: compiled by nvcc into kernels.ptx and by the host's compiler into the
// test that runs it. Only operations that IEEE 754 or C++ define exactly.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define BOTH __host__ __device__
#else
#define BOTH
#endif

namespace formulas {

BOTH inline uint32_t mixed(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ x >> 16;
}

// Loops whose length differs by thread, with branches inside.
BOTH inline uint32_t collatz(uint32_t n) {
  uint32_t steps = 0;
  uint64_t x = n + 1;
  while (x != 1 && steps < 500) {
    if (x % 2 == 0)
      x /= 2;
    else
      x = 3 * x + 1;
    ++steps;
  }
  return steps;
}

BOTH inline int64_t integers(int32_t a, int32_t b) {
  int64_t sum = static_cast<int64_t>(a) * b;
  sum += a / (b | 1) + a % (b | 1);
  sum ^= static_cast<int64_t>(static_cast<uint32_t>(a) << (b & 31));
  sum -= static_cast<int64_t>(a >> (b & 31));
  const uint64_t ua = static_cast<uint32_t>(a), ub = static_cast<uint32_t>(b);
  sum += static_cast<int64_t>((ua << 32 | ub) / (ub | 1));
  switch (a & 7) {
    case 0:
      return sum + 1;
    case 1:
      return sum * 3;
    case 2:
      return sum - b;
    case 3:
      return ~sum;
    case 4:
      return sum >> 3;
    case 5:
      return sum ^ a;
    default:
      return sum;
  }
}

BOTH inline double doubles(double a, double b) {
  const double c = a / (b * b + 1);
  return (c + a) * (b - c) + static_cast<double>(static_cast<float>(a)) - static_cast<int>(b);
}

BOTH inline float local_array(int32_t seed) {
  int32_t values[16];
  for (int i = 0; i < 16; ++i) values[i] = static_cast<int32_t>(mixed(seed + i) % 1000);
  for (int i = 1; i < 16; ++i) {  // insertion sort: dynamic indices
    const int32_t value = values[i];
    int k = i - 1;
    for (; k >= 0 && values[k] > value; --k) values[k + 1] = values[k];
    values[k + 1] = value;
  }
  return static_cast<float>(values[seed & 15]) * 0.5f;
}

}  // namespace formulas
