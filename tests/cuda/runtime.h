// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the runtime-API tests share. These sources compile with our headers and with NVIDIA's.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "cuda/bytes.h"
#include "kernels/emulated.h"
#include "kernels/kernels.h"

#define CUDA_OK(call) ASSERT_EQ(cudaSuccess, (call))
#define CUDA_EXPECT_OK(call) EXPECT_EQ(cudaSuccess, (call))

extern "C" void sealane_kv_append(examples::KvAppend);

namespace sealane::test {

class RuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    CUDA_OK(cudaSetDevice(0));
    examples::register_emulated_kernels();
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  void TearDown() override {
    CUDA_EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "an error was left behind";
  }
};

// Waits for what "synchronous" calls may have left running, as non-blocking streams do not.
inline void settle() { EXPECT_EQ(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess); }

class DeviceBytes {
 public:
  explicit DeviceBytes(size_t size) : size_(size) {
    EXPECT_EQ(cudaSuccess, cudaMalloc(&memory_, size));
  }
  ~DeviceBytes() { EXPECT_EQ(cudaSuccess, cudaFree(memory_)); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  unsigned char* data() const { return static_cast<unsigned char*>(memory_); }

  ByteVector read() const {
    ByteVector out(size_);
    EXPECT_EQ(cudaSuccess, cudaMemcpy(out.data(), memory_, size_, cudaMemcpyDeviceToHost));
    return out;
  }
  void write(const ByteVector& bytes) const {
    EXPECT_EQ(cudaSuccess, cudaMemcpy(memory_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    settle();
  }
  void fill(int value) const {
    EXPECT_EQ(cudaSuccess, cudaMemset(memory_, value, size_));
    settle();
  }

 private:
  void* memory_ = nullptr;
  size_t size_;
};

class PinnedBytes {
 public:
  explicit PinnedBytes(size_t size) { EXPECT_EQ(cudaSuccess, cudaMallocHost(&memory_, size)); }
  ~PinnedBytes() { EXPECT_EQ(cudaSuccess, cudaFreeHost(memory_)); }
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;

  unsigned char* data() const { return static_cast<unsigned char*>(memory_); }

 private:
  void* memory_ = nullptr;
};

class RuntimeStream {
 public:
  explicit RuntimeStream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, flags));
  }
  ~RuntimeStream() { EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_)); }
  RuntimeStream(const RuntimeStream&) = delete;
  RuntimeStream& operator=(const RuntimeStream&) = delete;

  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class RuntimeEvent {
 public:
  explicit RuntimeEvent(unsigned flags = cudaEventDefault) {
    EXPECT_EQ(cudaSuccess, cudaEventCreateWithFlags(&event_, flags));
  }
  ~RuntimeEvent() { EXPECT_EQ(cudaSuccess, cudaEventDestroy(event_)); }
  RuntimeEvent(const RuntimeEvent&) = delete;
  RuntimeEvent& operator=(const RuntimeEvent&) = delete;

  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Launches a kernel that writes `words` words which depend on `owner`.
inline cudaError_t launch_fill(void* to, uint32_t words, uint32_t owner, cudaStream_t stream) {
  examples::KvAppend kernel{static_cast<uint32_t*>(to), words, 1, owner, 0};
  void* arguments[] = {&kernel};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&sealane_kv_append),
                          dim3((words + 127) / 128), dim3(128), arguments, 0, stream);
}
inline uint32_t filled_word(uint32_t owner, uint32_t index) {
  return examples::kv_word(owner, 0, index);
}

}  // namespace sealane::test
