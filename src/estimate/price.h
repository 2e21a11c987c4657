// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a unit of work costs when GPUs and cores have a price: cores that seal are paid for, GPU
// time that is not lost is won. Plain values, pure.
#pragma once

#include <cstdint>

namespace sealane::estimate {

struct Prices {
  double gpu_per_hour = 0;
  double core_per_hour = 0;

  bool given() const { return gpu_per_hour > 0 || core_per_hour > 0; }
  // Of so many GPUs and cores for so long.
  double of(double seconds, double gpus, double cores) const {
    constexpr double kSecondsPerHour = 3600;
    return seconds * (gpus * gpu_per_hour + cores * core_per_hour) / kSecondsPerHour;
  }
};

}  // namespace sealane::estimate
