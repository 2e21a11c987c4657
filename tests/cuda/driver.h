// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the driver-API tests share: device 0's primary context current, memory that frees itself,
// and the examples' kernels.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include "cuda/bytes.h"
#include "kernels/emulated.h"
#include "kernels/image.h"
#include "kernels/kernels.h"

#define CU_OK(call) ASSERT_EQ(CUDA_SUCCESS, (call))
#define CU_EXPECT_OK(call) EXPECT_EQ(CUDA_SUCCESS, (call))

namespace sealane::test {

class DriverTest : public testing::Test {
 protected:
  void SetUp() override {
    CU_OK(cuInit(0));
    CU_OK(cuDeviceGet(&device_, 0));
    CU_OK(cuDevicePrimaryCtxRetain(&context_, device_));
    CU_OK(cuCtxSetCurrent(context_));
  }
  void TearDown() override {
    CU_EXPECT_OK(cuCtxSynchronize());
    CU_EXPECT_OK(cuCtxSetCurrent(nullptr));
    CU_EXPECT_OK(cuDevicePrimaryCtxRelease(device_));
  }

  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

// Some "synchronous" calls return before the device is done (fills, copies between device
// allocations, copies from pageable memory), and non-blocking streams do not wait for them.
inline void settle() { EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(CU_STREAM_LEGACY)); }

// Device memory of the current context.
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes) : bytes_(bytes) {
    EXPECT_EQ(CUDA_SUCCESS, cuMemAlloc(&address_, bytes));
  }
  ~DeviceMemory() { EXPECT_EQ(CUDA_SUCCESS, cuMemFree(address_)); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  CUdeviceptr address() const { return address_; }
  size_t bytes() const { return bytes_; }

  ByteVector read() const {
    ByteVector out(bytes_);
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH(out.data(), address_, bytes_));
    return out;
  }
  void fill(unsigned char value) const {
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8(address_, value, bytes_));
    settle();
  }
  void write(const ByteVector& bytes) const {
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyHtoD(address_, bytes.data(), bytes.size()));
    settle();
  }

 private:
  CUdeviceptr address_ = 0;
  size_t bytes_;
};

class PinnedMemory {
 public:
  explicit PinnedMemory(size_t bytes) {
    EXPECT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&memory_, bytes, 0));
  }
  ~PinnedMemory() { EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(memory_)); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  unsigned char* data() const { return static_cast<unsigned char*>(memory_); }

 private:
  void* memory_ = nullptr;
};

class DriverStream {
 public:
  explicit DriverStream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    EXPECT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream_, flags));
  }
  ~DriverStream() { EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy(stream_)); }
  DriverStream(const DriverStream&) = delete;
  DriverStream& operator=(const DriverStream&) = delete;

  operator CUstream() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

class DriverEvent {
 public:
  explicit DriverEvent(unsigned flags = CU_EVENT_DEFAULT) {
    EXPECT_EQ(CUDA_SUCCESS, cuEventCreate(&event_, flags));
  }
  ~DriverEvent() { EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy(event_)); }
  DriverEvent(const DriverEvent&) = delete;
  DriverEvent& operator=(const DriverEvent&) = delete;

  operator CUevent() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

// The examples' kernels, loaded as a module of the current context.
class KernelModule {
 public:
  KernelModule() {
    examples::register_emulated_kernels();
    EXPECT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module_, examples::kernel_image()));
  }
  ~KernelModule() { EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module_)); }
  KernelModule(const KernelModule&) = delete;
  KernelModule& operator=(const KernelModule&) = delete;

  CUmodule handle() const { return module_; }
  CUfunction function(const char* name) const {
    CUfunction function = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&function, module_, name)) << name;
    return function;
  }

  template <typename Kernel>
  void launch(const Kernel& kernel, CUstream stream) const {
    using examples::kBlockThreads;
    void* arguments[] = {const_cast<Kernel*>(&kernel)};
    const auto blocks = static_cast<unsigned>((kernel.items() + kBlockThreads - 1) / kBlockThreads);
    const char* const name = examples::kernel_name(examples::KernelIdOf<Kernel>::value);
    EXPECT_EQ(CUDA_SUCCESS, cuLaunchKernel(function(name), blocks, 1, 1, kBlockThreads, 1, 1, 0,
                                           stream, arguments, nullptr));
  }

 private:
  CUmodule module_ = nullptr;
};

// A kernel that writes `words` words which depend on `owner`.
inline examples::KvAppend fill_kernel(CUdeviceptr to, uint32_t words, uint32_t owner) {
  return {reinterpret_cast<uint32_t*>(to), words, 1, owner, 0};
}
inline uint32_t filled_word(uint32_t owner, uint32_t index) {
  return examples::kv_word(owner, 0, index);
}

}  // namespace sealane::test
