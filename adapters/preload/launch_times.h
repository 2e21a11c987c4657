// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How long kernels run, for `sealane record`: an event before and one behind each launch, read when
// both have passed. Nothing is done unless a recording was asked for, or while a stream is being
// captured. On an idle stream the time from launch to start is in it.
//
// Thread-safe.
#pragma once

#include <cstdint>

#include "cuda_abi/cuda_types.h"
#include "serve/gpu_driver.h"

namespace sealane::preload {

class LaunchTimer {
 public:
  explicit LaunchTimer(serve::StreamHandle stream);  // before the launch
  // Behind it. The number under which its time will be told; 0: it will not be.
  uint64_t stop(CUresult result);
  LaunchTimer(const LaunchTimer&) = delete;
  LaunchTimer& operator=(const LaunchTimer&) = delete;

 private:
  serve::StreamHandle stream_;
  CUevent before_ = nullptr;
  CUevent behind_ = nullptr;
};

void find_launch_times();     // what they call, before anybody needs it (table.h)
void collect_launch_times();  // tells those that are known by now
void forget_launch_times();   // a context ends, and its events with it

}  // namespace sealane::preload
