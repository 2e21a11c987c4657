// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A program destroys a stream with a copy in it, as it may: what is in the stream goes on. The
// hardware queue has not come to the copy's gate yet (SEALANE_EMU_QUEUES=1, and another stream
// holds it) when the program wants all contexts there are (SEALANE_EMU_CONTEXTS=4), and one that it
// gets has the memory of those that went. Does the gate open nevertheless?

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "must.h"

namespace {

constexpr size_t kBytes = 4096;
constexpr auto kPatience = std::chrono::minutes(1);

std::atomic<bool> held{true};

void hold(void*) { held.wait(true); }

// The copy is carried, though the queue has not come to its gate.
void await(const std::atomic_ref<unsigned char>& byte, unsigned char value) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (byte.load() != value) {
    if (std::chrono::steady_clock::now() > until) fail("the copy was not carried");
    std::this_thread::yield();
  }
}

// Writes over whatever memory the runtime had.
void take_all_contexts() {
  CUcontext last = nullptr;
  while (cuCtxCreate(&last, nullptr, 0, 0) == CUDA_SUCCESS) {
    for (int i = 0; i < 128; ++i) {
      CUdeviceptr memory = 0;
      OK(cuMemAlloc(&memory, kBytes));
      OK(cuMemsetD8(memory, 0, kBytes));
    }
    OK(cuCtxSynchronize());
  }
}

}  // namespace

int main() {
  const OneDevice device(kBytes);
  OK(cuMemsetD8(device.memory, 5, kBytes));
  unsigned char* host = nullptr;
  OK(cuMemAllocHost(reinterpret_cast<void**>(&host), kBytes));
  std::memset(host, 0, kBytes);
  CUstream other = nullptr;
  CUevent behind = nullptr;
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&behind, CU_EVENT_DISABLE_TIMING));
  OK(cuMemcpyDtoHAsync(host, device.memory, 100, device.stream));
  OK(cuStreamSynchronize(device.stream));

  OK(cuLaunchHostFunc(other, &hold, nullptr));
  OK(cuMemcpyDtoHAsync(host + 1000, device.memory, 100, device.stream));
  OK(cuEventRecord(behind, device.stream));
  OK(cuStreamDestroy(device.stream));
  await(std::atomic_ref(host[1099]), 5);
  take_all_contexts();
  OK(cuCtxSetCurrent(device.context));
  held = false;
  held.notify_all();
  alarm(60);
  OK(cuEventSynchronize(behind));
  OK(cuCtxSynchronize());
  std::puts("ok");
}
