// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Are the runtime API's errors the right ones, and does the last error keep CUDA's rules?

#include <cstring>
#include <thread>

#include "cuda/runtime.h"

namespace sealane::test {
namespace {

class RuntimeErrors : public RuntimeTest {
 protected:
  // Errors are what these tests make: each takes its own.
  void TearDown() override {
    cudaGetLastError();
    RuntimeTest::TearDown();
  }
};

TEST_F(RuntimeErrors, TheLastOneIsTakenOnce) {
  EXPECT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(RuntimeErrors, SuccessDoesNotEraseTheLastOne) {
  EXPECT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);
  DeviceBytes device(16);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(RuntimeErrors, EachThreadHasItsOwn) {
  EXPECT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);
  cudaError_t other = cudaErrorUnknown;
  std::thread([&] { other = cudaGetLastError(); }).join();
  EXPECT_EQ(other, cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(RuntimeErrors, TooMuchMemory) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, size_t{1} << 50), cudaErrorMemoryAllocation);
}

TEST_F(RuntimeErrors, FreeingTwice) {
  void* memory = nullptr;
  CUDA_OK(cudaMalloc(&memory, 256));
  CUDA_OK(cudaFree(memory));
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
}

TEST_F(RuntimeErrors, CopiesOutsideAllocations) {
  DeviceBytes device(4096);
  ByteVector host(16);
  EXPECT_EQ(cudaMemcpy(device.data() + 4090, host.data(), 16, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(device.data(), 0, 1 << 22), cudaErrorInvalidValue);
}

TEST_F(RuntimeErrors, DirectionsThatDoNotExist) {
  DeviceBytes device(16);
  ByteVector host(16);
  EXPECT_EQ(cudaMemcpy(device.data(), host.data(), 16, static_cast<cudaMemcpyKind>(7)),
            cudaErrorInvalidMemcpyDirection);
}

TEST_F(RuntimeErrors, ImpossibleLaunches) {
  DeviceBytes device(64);
  examples::KvAppend kernel{reinterpret_cast<uint32_t*>(device.data()), 16, 1, 0, 0};
  void* arguments[] = {&kernel};
  const void* const function = reinterpret_cast<const void*>(&sealane_kv_append);
  EXPECT_EQ(cudaLaunchKernel(function, dim3(0), dim3(128), arguments, 0, nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLaunchKernel(function, dim3(1), dim3(4096), arguments, 0, nullptr),
            cudaErrorInvalidConfiguration);
  int not_a_kernel = 0;
  EXPECT_EQ(cudaLaunchKernel(&not_a_kernel, dim3(1), dim3(128), arguments, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
}

TEST_F(RuntimeErrors, HandlesOfDestroyedObjects) {
  cudaEvent_t event = nullptr;
  CUDA_OK(cudaEventCreate(&event));
  CUDA_OK(cudaEventDestroy(event));
  EXPECT_NE(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(nullptr, nullptr), cudaErrorInvalidResourceHandle);
}

TEST_F(RuntimeErrors, HaveNamesAndTexts) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue");
  EXPECT_STREQ(cudaGetErrorName(cudaSuccess), "cudaSuccess");
  EXPECT_NE(std::strlen(cudaGetErrorString(cudaErrorMemoryAllocation)), 0u);
}

TEST_F(RuntimeErrors, DevicesAndVersionsAreReported) {
  int devices = 0;
  CUDA_OK(cudaGetDeviceCount(&devices));
  EXPECT_GE(devices, 1);
  cudaDeviceProp properties{};
  CUDA_OK(cudaGetDeviceProperties(&properties, 0));
  EXPECT_NE(properties.name[0], '\0');
  EXPECT_GE(properties.major, 7);
  EXPECT_GT(properties.totalGlobalMem, 0u);
  int version = 0;
  CUDA_OK(cudaRuntimeGetVersion(&version));
  EXPECT_GE(version, 12000);
}

// Programs print them, and some compare.
TEST_F(RuntimeErrors, NamesAndTextsAreCudas) {
  const struct {
    cudaError_t error;
    const char* name;
    const char* text;
  } known[] = {
      {cudaSuccess, "cudaSuccess", "no error"},
      {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
      {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
      {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
      {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
      {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
       "an illegal memory access was encountered"},
      {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
      {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
      {static_cast<cudaError_t>(10000), "cudaErrorApiFailureBase", "api failure base"},
      {static_cast<cudaError_t>(12345), "unrecognized error code", "unrecognized error code"},
  };
  for (const auto& each : known) {
    EXPECT_STREQ(cudaGetErrorName(each.error), each.name);
    EXPECT_STREQ(cudaGetErrorString(each.error), each.text);
  }
}

}  // namespace
}  // namespace sealane::test
