// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do two threads that want a context at a time both get one, where the runtime has those that are
// left? (SEALANE_EMU_CONTEXTS=3: the program's first, and one for copies in each direction.) What
// holds a stream is waited for two seconds and then left where it is, and on a busy machine that
// may be anything: such a round is made again.

#include <barrier>
#include <chrono>
#include <thread>

#include "must.h"

namespace {

constexpr int kRounds = 50;
constexpr int kDisturbedMax = 10;
constexpr size_t kBytes = 4096;

// Each way there is a thread of the runtime's with a context, then.
void copy_in_and_out(const OneDevice& device, void* host) {
  OK(cuMemcpyHtoDAsync(device.memory, host, kBytes, device.stream));
  OK(cuMemcpyDtoHAsync(host, device.memory, kBytes, device.stream));
  OK(cuStreamSynchronize(device.stream));
}

}  // namespace

int main() {
  const OneDevice device(kBytes);
  void* host = nullptr;
  OK(cuMemAllocHost(&host, kBytes));
  std::barrier both(2);
  CUcontext contexts[2] = {};
  CUresult results[2] = {};
  int disturbed = 0;
  for (int round = 0; round < kRounds; ++round) {
    copy_in_and_out(device, host);
    const auto begin = std::chrono::steady_clock::now();
    const auto create = [&](int who) {
      both.arrive_and_wait();
      results[who] = cuCtxCreate(&contexts[who], nullptr, 0, 0);
      both.arrive_and_wait();  // what one gives back is not the other's
    };
    std::thread first(create, 0);
    std::thread second(create, 1);
    first.join();
    second.join();
    const bool waited = std::chrono::steady_clock::now() - begin > std::chrono::seconds(2);
    const bool again = waited && ++disturbed <= kDisturbedMax;
    for (int who = 0; who < 2; ++who) {
      if (results[who] == CUDA_SUCCESS) OK(cuCtxDestroy(contexts[who]));
      if (!again) ok(results[who], "cuCtxCreate beside another");
    }
  }
  std::puts("ok");
}
