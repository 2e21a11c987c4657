// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does every kind of copy and fill of the driver API move the right bytes to the right place?

#include <cstring>

#include "cuda/driver.h"

namespace sealane::test {
namespace {

class DriverCopies : public DriverTest {};

TEST_F(DriverCopies, SynchronousOfAllSizes) {
  for (const size_t size : kCopySizes) {
    DeviceMemory device(size);
    const ByteVector sent = make_bytes(size, 1);
    device.write(sent);
    EXPECT_EQ(device.read(), sent) << size;
  }
}

TEST_F(DriverCopies, OfNothingDoNothing) {
  DeviceMemory device(16);
  ByteVector host(16);
  CU_EXPECT_OK(cuMemcpyHtoD(device.address(), host.data(), 0));
  CU_EXPECT_OK(cuMemcpyDtoH(host.data(), device.address(), 0));
  CU_EXPECT_OK(cuMemcpyHtoDAsync(device.address(), host.data(), 0, nullptr));
}

// As a program gets it that subtracts one length too many. Added to an address it comes out below.
TEST_F(DriverCopies, OfLessThanNothingAreRefusedAndHarmNothing) {
  constexpr size_t kSize = 1 << 20;
  constexpr size_t kAt = 4096;
  DriverStream stream;
  DeviceMemory device(kSize);
  const ByteVector sent = make_bytes(kSize, 5);
  device.write(sent);
  PinnedMemory pinned(kSize);
  ByteVector pageable = make_bytes(kSize, 6);
  std::memcpy(pinned.data(), pageable.data(), kSize);
  const CUdeviceptr there = device.address() + kAt;
  for (uint8_t* const host : {static_cast<uint8_t*>(pinned.data()) + kAt, pageable.data() + kAt}) {
    for (const size_t less : {size_t{1}, size_t{64}, kAt, size_t{1} << 40, size_t{1} << 63}) {
      const size_t size = size_t{0} - less;
      EXPECT_EQ(cuMemcpyHtoDAsync(there, host, size, stream), CUDA_ERROR_INVALID_VALUE) << less;
      EXPECT_EQ(cuMemcpyDtoHAsync(host, there, size, stream), CUDA_ERROR_INVALID_VALUE) << less;
      EXPECT_EQ(cuMemcpyHtoD(there, host, size), CUDA_ERROR_INVALID_VALUE) << less;
      EXPECT_EQ(cuMemcpyDtoH(host, there, size), CUDA_ERROR_INVALID_VALUE) << less;
      CU_EXPECT_OK(cuStreamSynchronize(stream));
    }
  }
  EXPECT_EQ(device.read(), sent);
  EXPECT_EQ(pageable, make_bytes(kSize, 6));
  EXPECT_EQ(std::memcmp(pinned.data(), pageable.data(), kSize), 0);
}

TEST_F(DriverCopies, AsynchronousFromAndToPinnedMemory) {
  DriverStream stream;
  for (const size_t size : kCopySizes) {
    DeviceMemory device(size);
    PinnedMemory from(size);
    PinnedMemory to(size);
    const ByteVector sent = make_bytes(size, 2);
    std::memcpy(from.data(), sent.data(), size);
    CU_OK(cuMemcpyHtoDAsync(device.address(), from.data(), size, stream));
    CU_OK(cuMemcpyDtoHAsync(to.data(), device.address(), size, stream));
    CU_OK(cuStreamSynchronize(stream));
    EXPECT_EQ(std::memcmp(to.data(), sent.data(), size), 0) << size;
  }
}

// A pageable source belongs to the program again when the call returns.
TEST_F(DriverCopies, PageableSourceMayBeReusedAtOnce) {
  constexpr size_t kSize = (2 << 20) + 5;
  DriverStream stream;
  DeviceMemory first(kSize);
  DeviceMemory second(kSize);
  ByteVector source = make_bytes(kSize, 3);
  const ByteVector original = source;
  CU_OK(cuMemcpyHtoDAsync(first.address(), source.data(), kSize, stream));
  std::memset(source.data(), 0xee, kSize);
  CU_OK(cuMemcpyHtoDAsync(second.address(), source.data(), kSize, stream));
  std::memset(source.data(), 0x11, kSize);
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(first.read(), original);
  EXPECT_EQ(second.read(), ByteVector(kSize, 0xee));
}

// A pageable destination is complete when the call returns or the stream is synchronised.
TEST_F(DriverCopies, PageableDestination) {
  constexpr size_t kSize = (1 << 20) + 7;
  DriverStream stream;
  DeviceMemory device(kSize);
  const ByteVector sent = make_bytes(kSize, 4);
  device.write(sent);
  ByteVector received(kSize);
  CU_OK(cuMemcpyDtoHAsync(received.data(), device.address(), kSize, stream));
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(received, sent);
}

TEST_F(DriverCopies, IntoTheMiddleOfAnAllocation) {
  DeviceMemory device(4096);
  device.write(ByteVector(4096, 0xaa));
  const ByteVector part = make_bytes(1001, 5);
  CU_OK(cuMemcpyHtoD(device.address() + 77, part.data(), part.size()));
  ByteVector expected(4096, 0xaa);
  std::memcpy(expected.data() + 77, part.data(), part.size());
  EXPECT_EQ(device.read(), expected);
  ByteVector back(part.size());
  CU_OK(cuMemcpyDtoH(back.data(), device.address() + 77, back.size()));
  EXPECT_EQ(back, part);
}

TEST_F(DriverCopies, BetweenDeviceAllocations) {
  constexpr size_t kSize = 100003;
  DriverStream stream;
  DeviceMemory a(kSize);
  DeviceMemory b(kSize);
  DeviceMemory c(kSize);
  const ByteVector sent = make_bytes(kSize, 6);
  a.write(sent);
  CU_OK(cuMemcpyDtoD(b.address(), a.address(), kSize));
  settle();
  CU_OK(cuMemcpyDtoDAsync(c.address(), b.address(), kSize, stream));
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(c.read(), sent);
}

// cuMemcpy finds out from the pointers what to do.
TEST_F(DriverCopies, DirectionInferredFromPointers) {
  constexpr size_t kSize = 5000;
  const auto address_of = [](const void* host) { return reinterpret_cast<CUdeviceptr>(host); };
  DriverStream stream;
  DeviceMemory a(kSize);
  DeviceMemory b(kSize);
  PinnedMemory pinned(kSize);
  const ByteVector sent = make_bytes(kSize, 7);
  ByteVector received(kSize);
  CU_OK(cuMemcpy(a.address(), address_of(sent.data()), kSize));
  settle();
  CU_OK(cuMemcpyAsync(b.address(), a.address(), kSize, stream));
  CU_OK(cuMemcpyAsync(address_of(pinned.data()), b.address(), kSize, stream));
  CU_OK(cuStreamSynchronize(stream));
  CU_OK(cuMemcpy(address_of(received.data()), address_of(pinned.data()), kSize));
  EXPECT_EQ(received, sent);
}

TEST_F(DriverCopies, OfRowsWithPitch) {
  constexpr size_t kWidth = 100;
  constexpr size_t kHeight = 37;
  CUdeviceptr device = 0;
  size_t pitch = 0;
  CU_OK(cuMemAllocPitch(&device, &pitch, kWidth, kHeight, 4));
  EXPECT_GE(pitch, kWidth);
  const ByteVector sent = make_bytes(kWidth * kHeight, 8);
  CUDA_MEMCPY2D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = sent.data();
  in.srcPitch = kWidth;
  in.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  in.dstDevice = device;
  in.dstPitch = pitch;
  in.WidthInBytes = kWidth;
  in.Height = kHeight;
  CU_OK(cuMemcpy2D(&in));
  settle();
  // Back: the rectangle from (10, 5), 50 wide and 20 high, asynchronously.
  ByteVector received(50 * 20);
  DriverStream stream;
  CUDA_MEMCPY2D out{};
  out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  out.srcDevice = device;
  out.srcPitch = pitch;
  out.srcXInBytes = 10;
  out.srcY = 5;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = received.data();
  out.dstPitch = 50;
  out.WidthInBytes = 50;
  out.Height = 20;
  CU_OK(cuMemcpy2DAsync(&out, stream));
  CU_OK(cuStreamSynchronize(stream));
  for (size_t row = 0; row < 20; ++row) {
    EXPECT_EQ(std::memcmp(&received[row * 50], &sent[(row + 5) * kWidth + 10], 50), 0) << row;
  }
  CU_OK(cuMemFree(device));
}

TEST_F(DriverCopies, OfBoxes) {
  constexpr size_t kWidth = 32, kHeight = 8, kDepth = 6;
  const ByteVector sent = make_bytes(kWidth * kHeight * kDepth, 9);
  DeviceMemory device(sent.size());
  CUDA_MEMCPY3D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = sent.data();
  in.srcPitch = kWidth;
  in.srcHeight = kHeight;
  in.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  in.dstDevice = device.address();
  in.dstPitch = kWidth;
  in.dstHeight = kHeight;
  in.WidthInBytes = kWidth;
  in.Height = kHeight;
  in.Depth = kDepth;
  CU_OK(cuMemcpy3D(&in));
  EXPECT_EQ(device.read(), sent);
  ByteVector received(8 * 3 * 2);
  CUDA_MEMCPY3D out{};
  out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  out.srcDevice = device.address();
  out.srcPitch = kWidth;
  out.srcHeight = kHeight;
  out.srcXInBytes = 4;
  out.srcY = 2;
  out.srcZ = 3;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = received.data();
  out.dstPitch = 8;
  out.dstHeight = 3;
  out.WidthInBytes = 8;
  out.Height = 3;
  out.Depth = 2;
  DriverStream stream;
  CU_OK(cuMemcpy3DAsync(&out, stream));
  CU_OK(cuStreamSynchronize(stream));
  for (size_t z = 0; z < 2; ++z) {
    for (size_t y = 0; y < 3; ++y) {
      const size_t at = ((z + 3) * kHeight + y + 2) * kWidth + 4;
      EXPECT_EQ(std::memcmp(&received[(z * 3 + y) * 8], &sent[at], 8), 0) << z << ' ' << y;
    }
  }
}

TEST_F(DriverCopies, ManyInOneCall) {
  constexpr size_t kCount = 5;
  constexpr size_t kSize = 70001;
  DriverStream stream;
  DeviceMemory device(kCount * kSize);
  std::vector<ByteVector> sent;
  std::vector<ByteVector> received(kCount, ByteVector(kSize));
  std::vector<CUdeviceptr> on_host, on_device, back;
  std::vector<size_t> sizes(kCount, kSize);
  for (size_t i = 0; i < kCount; ++i) {
    sent.push_back(make_bytes(kSize, static_cast<uint32_t>(20 + i)));
    on_device.push_back(device.address() + i * kSize);
  }
  for (size_t i = 0; i < kCount; ++i) {
    on_host.push_back(reinterpret_cast<CUdeviceptr>(sent[i].data()));
    back.push_back(reinterpret_cast<CUdeviceptr>(received[i].data()));
  }
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t first = 0;
  CU_OK(cuMemcpyBatchAsync(on_device.data(), on_host.data(), sizes.data(), kCount, &attributes,
                           &first, 1, stream));
  CU_OK(cuMemcpyBatchAsync(back.data(), on_device.data(), sizes.data(), kCount, &attributes, &first,
                           1, stream));
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(received, sent);
}

TEST_F(DriverCopies, BetweenDevices) {
  int devices = 0;
  CU_OK(cuDeviceGetCount(&devices));
  if (devices < 2) GTEST_SKIP() << "one device only";
  constexpr size_t kSize = (1 << 20) + 11;
  CUcontext other = nullptr;
  CU_OK(cuDevicePrimaryCtxRetain(&other, 1));
  DeviceMemory here(kSize);
  const ByteVector sent = make_bytes(kSize, 10);
  here.write(sent);
  CU_OK(cuCtxSetCurrent(other));
  {
    DriverStream stream;
    DeviceMemory there(kSize);
    DeviceMemory again(kSize);
    CU_OK(cuMemcpyPeer(there.address(), other, here.address(), context_, kSize));
    EXPECT_EQ(there.read(), sent);
    CU_OK(cuMemcpyPeerAsync(again.address(), other, here.address(), context_, kSize, stream));
    CU_OK(cuStreamSynchronize(stream));
    EXPECT_EQ(again.read(), sent);
  }
  CU_OK(cuCtxSetCurrent(context_));
  CU_OK(cuDevicePrimaryCtxRelease(1));
}

CUmemcpy3DOperand operand(const void* memory, size_t row_length, size_t layer_height) {
  CUmemcpy3DOperand out{};
  out.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  out.op.ptr.ptr = reinterpret_cast<CUdeviceptr>(memory);
  out.op.ptr.rowLength = row_length;
  out.op.ptr.layerHeight = layer_height;
  return out;
}

TEST_F(DriverCopies, ManyBlocksInOneCall) {
  constexpr size_t kWidth = 48;
  constexpr size_t kHeight = 5;
  constexpr size_t kDepth = 3;
  constexpr size_t kBlock = kWidth * kHeight * kDepth;
  constexpr size_t kPitch = 64;
  DriverStream stream;
  DeviceMemory device(2 * kPitch * kHeight * kDepth);
  device.fill(0);
  const ByteVector sent[] = {make_bytes(kBlock, 31), make_bytes(kBlock, 32)};
  ByteVector received[] = {ByteVector(kBlock), ByteVector(kBlock)};
  CUDA_MEMCPY3D_BATCH_OP in[2] = {};
  CUDA_MEMCPY3D_BATCH_OP out[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    const auto* there =
        reinterpret_cast<const void*>(device.address() + i * kPitch * kHeight * kDepth);
    in[i].src = operand(sent[i].data(), kWidth, kHeight);
    in[i].dst = operand(there, kPitch, kHeight);
    out[i].src = operand(there, kPitch, kHeight);
    out[i].dst = operand(received[i].data(), kWidth, kHeight);
    in[i].extent = out[i].extent = {kWidth, kHeight, kDepth};
    in[i].srcAccessOrder = out[i].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  }
  CU_OK(cuMemcpy3DBatchAsync(2, in, 0, stream));
  CU_OK(cuMemcpy3DBatchAsync(2, out, 0, stream));
  CU_OK(cuStreamSynchronize(stream));
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(received[i], sent[i]);
  EXPECT_EQ(device.read()[kWidth], 0) << "between the rows nothing was written";
}

TEST_F(DriverCopies, BlocksBetweenDevices) {
  int devices = 0;
  CU_OK(cuDeviceGetCount(&devices));
  if (devices < 2) GTEST_SKIP() << "one device only";
  constexpr size_t kPitch = 100;
  constexpr size_t kHeight = 7;
  constexpr size_t kDepth = 4;
  CUcontext other = nullptr;
  CU_OK(cuDevicePrimaryCtxRetain(&other, 1));
  DeviceMemory here(kPitch * kHeight * kDepth);
  const ByteVector sent = make_bytes(here.bytes(), 33);
  here.write(sent);
  CU_OK(cuCtxSetCurrent(other));
  {
    DriverStream stream;
    DeviceMemory there(here.bytes());
    there.fill(0);
    CUDA_MEMCPY3D_PEER block{};
    block.srcMemoryType = block.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    block.srcDevice = here.address();
    block.srcContext = context_;
    block.srcPitch = block.dstPitch = kPitch;
    block.srcHeight = block.dstHeight = kHeight;
    block.dstDevice = there.address();
    block.dstContext = other;
    block.WidthInBytes = kPitch;
    block.Height = kHeight;
    block.Depth = 2;
    CU_OK(cuMemcpy3DPeer(&block));
    settle();
    block.srcZ = block.dstZ = 2;
    CU_OK(cuMemcpy3DPeerAsync(&block, stream));
    CU_OK(cuStreamSynchronize(stream));
    EXPECT_EQ(there.read(), sent);
    // Part of each row.
    there.fill(0);
    block.srcZ = block.dstZ = 0;
    block.WidthInBytes = 60;
    CU_OK(cuMemcpy3DPeer(&block));
    settle();
    const ByteVector part = there.read();
    EXPECT_EQ(std::memcmp(&part[kPitch], &sent[kPitch], 60), 0);
    EXPECT_EQ(part[60], 0);
  }
  CU_OK(cuCtxSetCurrent(context_));
  CU_OK(cuDevicePrimaryCtxRelease(1));
}

TEST_F(DriverCopies, FillsOfAllWidths) {
  DeviceMemory device(64);
  CU_OK(cuMemsetD8(device.address(), 0x5a, 64));
  EXPECT_EQ(device.read(), ByteVector(64, 0x5a));
  CU_OK(cuMemsetD16(device.address() + 2, 0x1234, 3));
  CU_OK(cuMemsetD32(device.address() + 16, 0x89abcdef, 2));
  CU_OK(cuMemsetD8Async(device.address() + 63, 0x01, 1, nullptr));
  CU_OK(cuCtxSynchronize());
  ByteVector expected(64, 0x5a);
  for (size_t i = 0; i < 3; ++i) std::memcpy(&expected[2 + 2 * i], "\x34\x12", 2);
  for (size_t i = 0; i < 2; ++i) std::memcpy(&expected[16 + 4 * i], "\xef\xcd\xab\x89", 4);
  expected[63] = 1;
  EXPECT_EQ(device.read(), expected);
}

TEST_F(DriverCopies, FillsOfRows) {
  constexpr size_t kPitch = 32;
  DeviceMemory device(kPitch * 4);
  device.fill(0);
  CU_OK(cuMemsetD2D8(device.address() + 4, kPitch, 0x77, 5, 3));
  DriverStream stream;
  CU_OK(cuMemsetD2D32Async(device.address() + 16, kPitch, 0x01020304, 2, 4, stream));
  CU_OK(cuStreamSynchronize(stream));
  ByteVector expected(kPitch * 4);
  for (size_t row = 0; row < 4; ++row) {
    if (row < 3) std::memset(&expected[row * kPitch + 4], 0x77, 5);
    for (size_t i = 0; i < 2; ++i) std::memcpy(&expected[row * kPitch + 16 + 4 * i], "\4\3\2\1", 4);
  }
  EXPECT_EQ(device.read(), expected);
}

}  // namespace
}  // namespace sealane::test
