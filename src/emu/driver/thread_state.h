// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the driver keeps per thread: the stack of current contexts and the capture mode. Plain data
// without a destructor, so that it works in exit handlers; contexts are named, not owned.
#pragma once

#include "cuda_abi/cuda_types.h"

namespace sealane::emu {

struct ThreadState {
  static constexpr int kDepthMax = 64;
  CUcontext stack[kDepthMax];
  int depth;
  CUstreamCaptureMode capture_mode;
};

inline ThreadState& thread_state() {
  thread_local ThreadState state{};
  return state;
}

}  // namespace sealane::emu
