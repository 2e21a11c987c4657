// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do the calls that only ask or set something answer as CUDA does? Each is made with arguments that
// are valid on any device: who answers one of them with "not supported" has not got it.

#include <cstring>
#include <vector>

#include "cuda/runtime.h"

namespace sealane::test {
namespace {

class RuntimeQueries : public RuntimeTest {};

// A value of an enumeration that is an integer in our headers.
template <typename Type>
Type as(int value) {
  return static_cast<Type>(value);
}

const void* kernel() { return reinterpret_cast<const void*>(&sealane_kv_append); }

TEST_F(RuntimeQueries, OfDevicesAreAnswered) {
  int number = -1;
  size_t bytes = 0;
  unsigned flags = 0;
  CUDA_EXPECT_OK(cudaGetDevice(&number));
  EXPECT_EQ(number, 0);
  CUDA_EXPECT_OK(cudaDriverGetVersion(&number));
  EXPECT_GE(number, 12000);
  CUDA_EXPECT_OK(cudaInitDevice(0, 0, 0));
  CUDA_EXPECT_OK(cudaGetDeviceFlags(&flags));
  cudaDeviceProp wanted{};
  CUDA_EXPECT_OK(cudaGetDeviceProperties(&wanted, 0));
  CUDA_EXPECT_OK(cudaChooseDevice(&number, &wanted));
  int devices = 0;
  CUDA_EXPECT_OK(cudaGetDeviceCount(&devices));
  EXPECT_LT(number, devices);
  char id[32] = {};
  CUDA_EXPECT_OK(cudaDeviceGetPCIBusId(id, sizeof id, 0));
  number = -1;
  CUDA_EXPECT_OK(cudaDeviceGetByPCIBusId(&number, id));
  EXPECT_EQ(number, 0) << id;
  CUDA_EXPECT_OK(cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
  EXPECT_GT(bytes, 0u);
  CUDA_EXPECT_OK(cudaDeviceSetLimit(cudaLimitStackSize, bytes));
  cudaFuncCache cache = cudaFuncCachePreferL1;
  CUDA_EXPECT_OK(cudaDeviceGetCacheConfig(&cache));
  CUDA_EXPECT_OK(cudaDeviceSetCacheConfig(cache));
  int least = -1;
  int greatest = 1;
  CUDA_EXPECT_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_LE(greatest, least);
}

TEST_F(RuntimeQueries, OfTwoDevicesAreAnswered) {
  int devices = 0;
  CUDA_OK(cudaGetDeviceCount(&devices));
  if (devices < 2) GTEST_SKIP() << "one device";
  int can = -1;
  CUDA_EXPECT_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  if (can == 0) return;
  CUDA_EXPECT_OK(cudaDeviceEnablePeerAccess(1, 0));
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(cudaGetLastError(), cudaErrorPeerAccessAlreadyEnabled);
  CUDA_EXPECT_OK(cudaDeviceDisablePeerAccess(1));
}

TEST_F(RuntimeQueries, OfStreamsAndEventsAreAnswered) {
  int least = 0;
  int greatest = 0;
  CUDA_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  CUDA_OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  int number = -1;
  CUDA_EXPECT_OK(cudaStreamGetPriority(stream, &number));
  EXPECT_EQ(number, greatest);
  unsigned flags = 0;
  CUDA_EXPECT_OK(cudaStreamGetFlags(stream, &flags));
  EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));
  const RuntimeStream other;
  unsigned long long ids[2] = {};
  CUDA_EXPECT_OK(cudaStreamGetId(stream, &ids[0]));
  CUDA_EXPECT_OK(cudaStreamGetId(other, &ids[1]));
  EXPECT_NE(ids[0], ids[1]);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  CUDA_EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  CUDA_EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
  const RuntimeEvent event;
  CUDA_EXPECT_OK(cudaEventRecordWithFlags(event, stream, 0));
  CUDA_EXPECT_OK(cudaEventSynchronize(event));
  CUDA_EXPECT_OK(cudaStreamDestroy(stream));
}

TEST_F(RuntimeQueries, OfKernelsAreAnswered) {
  cudaFuncAttributes attributes{};
  CUDA_EXPECT_OK(cudaFuncGetAttributes(&attributes, kernel()));
  EXPECT_GE(attributes.maxThreadsPerBlock, 128);
  CUDA_EXPECT_OK(
      cudaFuncSetAttribute(kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize, 16 << 10));
  CUDA_EXPECT_OK(cudaFuncSetCacheConfig(kernel(), cudaFuncCachePreferNone));
  const char* name = nullptr;
  CUDA_EXPECT_OK(cudaFuncGetName(&name, kernel()));
  EXPECT_NE(name, nullptr);
  cudaFunction_t function = nullptr;
  CUDA_EXPECT_OK(cudaGetFuncBySymbol(&function, kernel()));
  EXPECT_NE(function, nullptr);
  int blocks = 0;
  CUDA_EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel(), 128, 0));
  EXPECT_GE(blocks, 1);
}

TEST_F(RuntimeQueries, OfPoolsAreAnswered) {
  cudaMemPool_t usual = nullptr;
  cudaMemPool_t current = nullptr;
  CUDA_OK(cudaDeviceGetDefaultMemPool(&usual, 0));
  CUDA_OK(cudaDeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, usual);
  cudaMemPoolProps props{};
  props.allocType = as<decltype(props.allocType)>(1);          // pinned
  props.location.type = as<decltype(props.location.type)>(1);  // a device
  cudaMemPool_t pool = nullptr;
  CUDA_OK(cudaMemPoolCreate(&pool, &props));
  CUDA_EXPECT_OK(cudaDeviceSetMemPool(0, pool));
  CUDA_EXPECT_OK(cudaDeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, pool);
  CUDA_EXPECT_OK(cudaDeviceSetMemPool(0, usual));
  uint64_t keep = 1 << 20;
  CUDA_EXPECT_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  uint64_t kept = 0;
  CUDA_EXPECT_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
  EXPECT_EQ(kept, keep);
  cudaMemAccessDesc access{};
  access.location = props.location;
  access.flags = as<decltype(access.flags)>(3);  // reading and writing
  CUDA_EXPECT_OK(cudaMemPoolSetAccess(pool, &access, 1));
  decltype(access.flags) may{};
  CUDA_EXPECT_OK(cudaMemPoolGetAccess(&may, pool, &props.location));
  EXPECT_EQ(may, access.flags);
  const RuntimeStream stream;
  void* memory = nullptr;
  CUDA_EXPECT_OK(cudaMallocFromPoolAsync(&memory, 4096, pool, stream));
  CUDA_EXPECT_OK(cudaFreeAsync(memory, stream));
  CUDA_EXPECT_OK(cudaStreamSynchronize(stream));
  CUDA_EXPECT_OK(cudaMemPoolTrimTo(pool, 0));
  CUDA_EXPECT_OK(cudaMemPoolDestroy(pool));
}

// The device's address of pinned memory is one that kernels write to.
TEST_F(RuntimeQueries, OfPinnedMemoryTellWhereTheDeviceFindsIt) {
  constexpr uint32_t kWords = 1000;
  for (const unsigned flags : {cudaHostAllocDefault, cudaHostAllocPortable, cudaHostAllocMapped}) {
    void* host = nullptr;
    CUDA_OK(cudaHostAlloc(&host, kWords * sizeof(uint32_t), flags));
    std::memset(host, 0, kWords * sizeof(uint32_t));
    unsigned told = ~0U;
    CUDA_EXPECT_OK(cudaHostGetFlags(&told, host));
    EXPECT_EQ(told & flags, flags);
    void* device = nullptr;
    CUDA_OK(cudaHostGetDevicePointer(&device, host, 0));
    const RuntimeStream stream;
    CUDA_EXPECT_OK(launch_fill(device, kWords, 7, stream));
    CUDA_EXPECT_OK(cudaStreamSynchronize(stream));
    std::vector<uint32_t> words(kWords);
    std::memcpy(words.data(), host, kWords * sizeof(uint32_t));
    for (uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(words[i], filled_word(7, i)) << i;
    CUDA_EXPECT_OK(cudaFreeHost(host));
  }
}

}  // namespace
}  // namespace sealane::test
