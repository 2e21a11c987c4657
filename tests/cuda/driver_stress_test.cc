// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do many threads on all devices get their own bytes back, with streams made and destroyed under
// way?

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "cuda/driver.h"

namespace sealane::test {
namespace {

constexpr int kThreadsPerDevice = 4;
constexpr int kRounds = 40;

// One round trip of random kinds: in, perhaps through a second allocation, out.
bool round_trip(std::mt19937& random) {
  const size_t size = 1 + random() % 300000;
  const ByteVector sent = make_bytes(size, static_cast<uint32_t>(random()));
  ByteVector received(size);
  CUstream stream = nullptr;
  CUdeviceptr a = 0;
  CUdeviceptr b = 0;
  void* pinned = nullptr;
  bool ok = cuStreamCreate(&stream, random() % 2) == CUDA_SUCCESS &&
            cuMemAlloc(&a, size) == CUDA_SUCCESS && cuMemAlloc(&b, size) == CUDA_SUCCESS &&
            cuMemAllocHost(&pinned, size) == CUDA_SUCCESS;
  if (random() % 2 == 0) {
    std::memcpy(pinned, sent.data(), size);
    ok = ok && cuMemcpyHtoDAsync(a, pinned, size, stream) == CUDA_SUCCESS;
  } else {
    ok = ok && cuMemcpyHtoDAsync(a, sent.data(), size, stream) == CUDA_SUCCESS;
  }
  ok = ok && cuMemcpyDtoDAsync(b, a, size, stream) == CUDA_SUCCESS &&
       cuMemsetD8Async(a, 0, size, stream) == CUDA_SUCCESS &&
       cuMemcpyDtoHAsync(received.data(), b, size, stream) == CUDA_SUCCESS &&
       cuStreamSynchronize(stream) == CUDA_SUCCESS;
  ok = cuMemFree(a) == CUDA_SUCCESS && cuMemFree(b) == CUDA_SUCCESS && ok;
  ok = cuMemFreeHost(pinned) == CUDA_SUCCESS && cuStreamDestroy(stream) == CUDA_SUCCESS && ok;
  return ok && received == sent;
}

TEST(DriverStress, ThreadsTimesDevices) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  int devices = 0;
  ASSERT_EQ(cuDeviceGetCount(&devices), CUDA_SUCCESS);
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < devices * kThreadsPerDevice; ++i) {
    threads.emplace_back([&, i] {
      CUcontext context = nullptr;
      cuDevicePrimaryCtxRetain(&context, i % devices);
      cuCtxSetCurrent(context);
      std::mt19937 random(static_cast<unsigned>(i));
      for (int round = 0; round < kRounds; ++round) good += round_trip(random) ? 1 : 0;
      cuDevicePrimaryCtxRelease(i % devices);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, devices * kThreadsPerDevice * kRounds);
}

}  // namespace
}  // namespace sealane::test
