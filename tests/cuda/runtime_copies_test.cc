// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does every kind of copy, fill and allocation of the runtime API do what it says?

#include <cstring>
#include <memory>

#include "cuda/runtime.h"

namespace sealane::test {
namespace {

class RuntimeCopies : public RuntimeTest {};
class RuntimeMemory : public RuntimeTest {};

TEST_F(RuntimeCopies, SynchronousOfAllSizes) {
  for (const size_t size : kCopySizes) {
    DeviceBytes device(size);
    const ByteVector sent = make_bytes(size, 1);
    device.write(sent);
    EXPECT_EQ(device.read(), sent) << size;
  }
}

TEST_F(RuntimeCopies, AsynchronousFromAndToPinnedMemory) {
  RuntimeStream stream;
  for (const size_t size : kCopySizes) {
    DeviceBytes device(size);
    PinnedBytes from(size);
    PinnedBytes to(size);
    const ByteVector sent = make_bytes(size, 2);
    std::memcpy(from.data(), sent.data(), size);
    CUDA_OK(cudaMemcpyAsync(device.data(), from.data(), size, cudaMemcpyHostToDevice, stream));
    CUDA_OK(cudaMemcpyAsync(to.data(), device.data(), size, cudaMemcpyDeviceToHost, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(std::memcmp(to.data(), sent.data(), size), 0) << size;
  }
}

TEST_F(RuntimeCopies, PageableSourceMayBeReusedAtOnce) {
  constexpr size_t kSize = (2 << 20) + 5;
  RuntimeStream stream;
  DeviceBytes device(kSize);
  ByteVector source = make_bytes(kSize, 3);
  const ByteVector original = source;
  CUDA_OK(cudaMemcpyAsync(device.data(), source.data(), kSize, cudaMemcpyHostToDevice, stream));
  std::memset(source.data(), 0, kSize);
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.read(), original);
}

TEST_F(RuntimeCopies, DefaultDirectionIsInferred) {
  constexpr size_t kSize = 5000;
  DeviceBytes a(kSize);
  DeviceBytes b(kSize);
  const ByteVector sent = make_bytes(kSize, 4);
  ByteVector received(kSize);
  CUDA_OK(cudaMemcpy(a.data(), sent.data(), kSize, cudaMemcpyDefault));
  CUDA_OK(cudaMemcpy(b.data(), a.data(), kSize, cudaMemcpyDefault));
  CUDA_OK(cudaMemcpy(received.data(), b.data(), kSize, cudaMemcpyDefault));
  EXPECT_EQ(received, sent);
}

TEST_F(RuntimeCopies, HostToHost) {
  const ByteVector sent = make_bytes(1000, 5);
  ByteVector received(1000);
  CUDA_OK(cudaMemcpy(received.data(), sent.data(), 1000, cudaMemcpyHostToHost));
  EXPECT_EQ(received, sent);
}

TEST_F(RuntimeCopies, OfRowsWithPitch) {
  constexpr size_t kWidth = 100;
  constexpr size_t kHeight = 30;
  void* device = nullptr;
  size_t pitch = 0;
  CUDA_OK(cudaMallocPitch(&device, &pitch, kWidth, kHeight));
  const ByteVector sent = make_bytes(kWidth * kHeight, 6);
  CUDA_OK(cudaMemset2D(device, pitch, 0x11, kWidth, kHeight));
  CUDA_OK(cudaMemcpy2D(device, pitch, sent.data(), kWidth, kWidth / 2, kHeight,
                       cudaMemcpyHostToDevice));
  ByteVector received(kWidth * kHeight);
  CUDA_OK(cudaMemcpy2D(received.data(), kWidth, device, pitch, kWidth, kHeight,
                       cudaMemcpyDeviceToHost));
  ByteVector expected(kWidth * kHeight, 0x11);
  for (size_t row = 0; row < kHeight; ++row) {
    std::memcpy(&expected[row * kWidth], &sent[row * kWidth], kWidth / 2);
  }
  EXPECT_EQ(received, expected);
  CUDA_OK(cudaFree(device));
}

TEST_F(RuntimeCopies, OfBoxes) {
  const cudaExtent extent = make_cudaExtent(32, 8, 6);
  cudaPitchedPtr device{};
  CUDA_OK(cudaMalloc3D(&device, extent));
  ByteVector sent = make_bytes(32 * 8 * 6, 7);
  cudaMemcpy3DParms in{};
  in.srcPtr = make_cudaPitchedPtr(sent.data(), 32, 32, 8);
  in.dstPtr = device;
  in.extent = extent;
  in.kind = cudaMemcpyHostToDevice;
  CUDA_OK(cudaMemcpy3D(&in));
  ByteVector received(sent.size());
  cudaMemcpy3DParms out{};
  out.srcPtr = device;
  out.dstPtr = make_cudaPitchedPtr(received.data(), 32, 32, 8);
  out.extent = extent;
  out.kind = cudaMemcpyDeviceToHost;
  CUDA_OK(cudaMemcpy3D(&out));
  EXPECT_EQ(received, sent);
  CUDA_OK(cudaFree(device.ptr));
}

TEST_F(RuntimeCopies, BetweenDevices) {
  int devices = 0;
  CUDA_OK(cudaGetDeviceCount(&devices));
  if (devices < 2) GTEST_SKIP() << "one device only";
  constexpr size_t kSize = 300007;
  DeviceBytes here(kSize);
  const ByteVector sent = make_bytes(kSize, 8);
  here.write(sent);
  CUDA_OK(cudaSetDevice(1));
  {
    DeviceBytes there(kSize);
    CUDA_OK(cudaMemcpyPeer(there.data(), 1, here.data(), 0, kSize));
    EXPECT_EQ(there.read(), sent);
  }
  CUDA_OK(cudaSetDevice(0));
}

TEST_F(RuntimeMemory, OfNothingIsNull) {
  void* memory = this;
  CUDA_OK(cudaMalloc(&memory, 0));
  EXPECT_EQ(memory, nullptr);
  CUDA_EXPECT_OK(cudaFree(nullptr));
}

TEST_F(RuntimeMemory, AttributesTellKindsApart) {
  DeviceBytes device(256);
  PinnedBytes pinned(256);
  const auto pageable = std::make_unique<char[]>(256);
  cudaPointerAttributes attributes{};
  CUDA_OK(cudaPointerGetAttributes(&attributes, device.data()));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.devicePointer, device.data());
  CUDA_OK(cudaPointerGetAttributes(&attributes, pinned.data()));
  // In confidential mode pinned memory is managed memory.
  EXPECT_TRUE(attributes.type == cudaMemoryTypeHost || attributes.type == cudaMemoryTypeManaged);
  EXPECT_EQ(attributes.hostPointer, pinned.data());
  CUDA_OK(cudaPointerGetAttributes(&attributes, pageable.get()));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

TEST_F(RuntimeMemory, StreamOrderedAllocations) {
  RuntimeStream stream;
  void* memory = nullptr;
  CUDA_OK(cudaMallocAsync(&memory, 4096, stream));
  CUDA_OK(cudaMemsetAsync(memory, 0x2b, 4096, stream));
  ByteVector received(4096);
  CUDA_OK(cudaMemcpyAsync(received.data(), memory, 4096, cudaMemcpyDeviceToHost, stream));
  CUDA_OK(cudaFreeAsync(memory, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(received, ByteVector(4096, 0x2b));
}

TEST_F(RuntimeMemory, RegistrationWorksOrIsRefusedWithoutSticking) {
  ByteVector memory = make_bytes(1 << 20, 9);
  const cudaError_t registered = cudaHostRegister(memory.data(), memory.size(), 0);
  if (registered != cudaSuccess) {
    EXPECT_EQ(registered, cudaErrorNotSupported);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
  }
  DeviceBytes device(memory.size());
  device.write(memory);
  EXPECT_EQ(device.read(), memory);
  if (registered == cudaSuccess) {
    CUDA_EXPECT_OK(cudaHostUnregister(memory.data()));
  }
}

TEST_F(RuntimeMemory, FreeMemoryIsReported) {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  CUDA_OK(cudaMemGetInfo(&free_bytes, &total_bytes));
  EXPECT_GT(free_bytes, 0u);
  EXPECT_LE(free_bytes, total_bytes);
}

}  // namespace
}  // namespace sealane::test
