// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do devices and contexts behave: current per thread, a stack, primary and created ones, and their
// errors?

#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "cuda/driver.h"

namespace sealane::test {
namespace {

class DriverContexts : public DriverTest {};

CUcontext current() {
  CUcontext context = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&context));
  return context;
}

TEST_F(DriverContexts, DevicesAreNumbered) {
  int count = 0;
  CU_OK(cuDeviceGetCount(&count));
  EXPECT_GE(count, 1);
  CUdevice device = -1;
  EXPECT_EQ(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
  char name[64] = {};
  CU_OK(cuDeviceGetName(name, sizeof name, device_));
  EXPECT_NE(name[0], '\0');
  int major = 0;
  CU_OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_));
  EXPECT_GE(major, 7);
}

TEST_F(DriverContexts, CallsWithoutAContextFail) {
  CU_OK(cuCtxSetCurrent(nullptr));
  CUdeviceptr address = 0;
  CUdevice device = 0;
  EXPECT_EQ(cuMemAlloc(&address, 16), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  CU_OK(cuCtxSetCurrent(context_));
}

TEST_F(DriverContexts, EachThreadHasItsOwnCurrentOne) {
  CUcontext in_thread = context_;
  std::thread thread([&] { in_thread = current(); });
  thread.join();
  EXPECT_EQ(in_thread, nullptr);
  EXPECT_EQ(current(), context_);
}

TEST_F(DriverContexts, PushAndPopAreAStack) {
  CUcontext made = nullptr;
  CU_OK(cuCtxCreate(&made, nullptr, 0, device_));  // also makes it current
  EXPECT_EQ(current(), made);
  CU_OK(cuCtxPushCurrent(context_));
  EXPECT_EQ(current(), context_);
  CUcontext popped = nullptr;
  CU_OK(cuCtxPopCurrent(&popped));
  EXPECT_EQ(popped, context_);
  EXPECT_EQ(current(), made);
  CU_OK(cuCtxDestroy(made));  // the current one: it is popped as well
  EXPECT_EQ(current(), context_);
}

TEST_F(DriverContexts, MemoryOfOneIsUsableFromAnother) {
  DeviceMemory device(4096);
  const ByteVector sent = make_bytes(4096, 30);
  device.write(sent);
  CUcontext made = nullptr;
  CU_OK(cuCtxCreate(&made, nullptr, 0, device_));
  EXPECT_EQ(device.read(), sent);
  CU_OK(cuCtxDestroy(made));
}

TEST_F(DriverContexts, CopiesOfTwoContextsDoNotMix) {
  CUcontext made = nullptr;
  CU_OK(cuCtxCreate(&made, nullptr, 0, device_));
  {
    DeviceMemory there(100001);
    CU_OK(cuCtxPushCurrent(context_));
    {
      DeviceMemory here(100001);
      for (uint32_t round = 0; round < 6; ++round) {
        const ByteVector sent = make_bytes(100001, 40 + round);
        (round % 2 == 0 ? here : there).write(sent);
        EXPECT_EQ((round % 2 == 0 ? here : there).read(), sent);
        CU_OK(cuCtxSetCurrent(round % 2 == 0 ? made : context_));
      }
      CU_OK(cuCtxSetCurrent(context_));
    }
    CUcontext popped = nullptr;
    CU_OK(cuCtxPopCurrent(&popped));
  }
  CU_OK(cuCtxDestroy(made));
}

TEST_F(DriverContexts, DestroyedOnesAreInvalid) {
  CUcontext made = nullptr;
  CU_OK(cuCtxCreate(&made, nullptr, 0, device_));
  CU_OK(cuCtxDestroy(made));
  EXPECT_NE(cuCtxDestroy(made), CUDA_SUCCESS);
  EXPECT_NE(cuCtxSetCurrent(made), CUDA_SUCCESS);
  CU_OK(cuCtxSetCurrent(context_));
}

TEST_F(DriverContexts, ThePrimaryOneIsCounted) {
  unsigned flags = 0;
  int active = 0;
  CU_OK(cuDevicePrimaryCtxGetState(device_, &flags, &active));
  EXPECT_EQ(active, 1);
  CUcontext again = nullptr;
  CU_OK(cuDevicePrimaryCtxRetain(&again, device_));
  EXPECT_EQ(again, context_);
  CU_OK(cuDevicePrimaryCtxRelease(device_));
  CU_OK(cuDevicePrimaryCtxGetState(device_, &flags, &active));
  EXPECT_EQ(active, 1);
}

TEST_F(DriverContexts, SayWhatTheyAre) {
  CUdevice device = -1;
  CU_OK(cuCtxGetDevice(&device));
  EXPECT_EQ(device, device_);
  unsigned version = 0;
  CU_OK(cuCtxGetApiVersion(context_, &version));
  EXPECT_GE(version, 3020u);
}

TEST(DriverErrors, HaveNames) {
  const char* text = nullptr;
  ASSERT_EQ(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_INVALID_VALUE");
  ASSERT_EQ(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
  EXPECT_NE(text[0], '\0');
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
}

class DriverHandles : public DriverTest {};

TEST_F(DriverHandles, OfDestroyedObjectsAreInvalid) {
  CUstream stream = nullptr;
  CU_OK(cuStreamCreate(&stream, 0));
  CU_OK(cuStreamDestroy(stream));
  EXPECT_NE(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_NE(cuStreamDestroy(stream), CUDA_SUCCESS);
  CUevent event = nullptr;
  CU_OK(cuEventCreate(&event, 0));
  CU_OK(cuEventDestroy(event));
  EXPECT_NE(cuEventQuery(event), CUDA_SUCCESS);
  CU_EXPECT_OK(cuCtxSynchronize());
}

TEST_F(DriverHandles, NullEventsAndOutputsAreErrors) {
  EXPECT_EQ(cuEventQuery(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventRecord(nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuMemAlloc(nullptr, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceGetCount(nullptr), CUDA_ERROR_INVALID_VALUE);
}

// The mode of the emulated GPU, where it is the one we run on.
std::optional<bool> confidential() {
  const char* const cc = std::getenv("SEALANE_EMU_CC");
  if (cc == nullptr) return std::nullopt;
  return cc == std::string("on") || cc == std::string("1");
}

// Two devices reach each other's memory, or the driver says before that they do not: in CC mode,
// and only there.
TEST_F(DriverContexts, PeersUseEachOthersMemoryIfTheDriverSaysTheyCan) {
  int count = 0;
  CU_OK(cuDeviceGetCount(&count));
  if (count < 2) GTEST_SKIP() << "one device";
  int can = -1;
  int supported = -1;
  int itself = -1;
  CU_OK(cuDeviceCanAccessPeer(&can, 0, 1));
  CU_OK(cuDeviceCanAccessPeer(&itself, 0, 0));
  EXPECT_EQ(itself, 0);
  CU_OK(cuDeviceGetP2PAttribute(&supported, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
  EXPECT_EQ(supported, can);
  if (confidential().has_value()) {
    EXPECT_EQ(can, *confidential() ? 0 : 1);
  }
  CUcontext other = nullptr;
  CU_OK(cuDevicePrimaryCtxRetain(&other, 1));
  EXPECT_EQ(cuCtxDisablePeerAccess(other), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  if (can == 0) {
    EXPECT_EQ(cuCtxEnablePeerAccess(other, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    CU_OK(cuDevicePrimaryCtxRelease(1));
    return;
  }
  constexpr uint32_t kWords = 64;
  CU_OK(cuCtxSetCurrent(other));
  CUdeviceptr there = 0;
  CU_OK(cuMemAlloc(&there, kWords * sizeof(uint32_t)));
  CU_OK(cuCtxSetCurrent(context_));
  EXPECT_EQ(cuCtxEnablePeerAccess(other, 1), CUDA_ERROR_INVALID_VALUE) << "flags must be 0";
  EXPECT_EQ(cuCtxEnablePeerAccess(context_, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  CU_OK(cuCtxEnablePeerAccess(other, 0));
  EXPECT_EQ(cuCtxEnablePeerAccess(other, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  {
    const KernelModule kernels;
    DriverStream stream;
    kernels.launch(fill_kernel(there, kWords, 3), stream);
    CU_OK(cuStreamSynchronize(stream));
  }
  uint32_t words[kWords] = {};
  CU_OK(cuMemcpyDtoH(words, there, sizeof words));
  for (uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(words[i], filled_word(3, i)) << i;
  CU_OK(cuCtxDisablePeerAccess(other));
  CU_OK(cuCtxSetCurrent(other));
  CU_OK(cuMemFree(there));
  CU_OK(cuCtxSetCurrent(context_));
  CU_OK(cuDevicePrimaryCtxRelease(1));
}

}  // namespace
}  // namespace sealane::test
