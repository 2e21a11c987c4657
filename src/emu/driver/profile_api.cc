// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The program says what it measures: the truth counters keep that part apart.

#include "emu/driver/api.h"

using namespace sealane::emu;

EMU_API cuProfilerStart() {
  return guarded([](Driver&) {
    start_profile();
    return CUDA_SUCCESS;
  });
}

EMU_API cuProfilerStop() {
  return guarded([](Driver&) {
    stop_profile();
    return CUDA_SUCCESS;
  });
}
