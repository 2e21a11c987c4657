// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do copies to, from and between CUDA arrays of the driver API move the right bytes to the right
// place, and is what does not fit refused?

#include <algorithm>
#include <cstring>
#include <random>

#include "cuda/driver.h"

namespace sealane::test {
namespace {

class DriverArrays : public DriverTest {};

CUDA_ARRAY3D_DESCRIPTOR described(size_t width, size_t height, size_t depth,
                                  CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8,
                                  unsigned channels = 1, unsigned flags = 0) {
  return {width, height, depth, format, channels, flags};
}

// An array of the current context.
class Array {
 public:
  explicit Array(const CUDA_ARRAY3D_DESCRIPTOR& what) {
    EXPECT_EQ(CUDA_SUCCESS, cuArray3DCreate(&array_, &what));
  }
  ~Array() { EXPECT_EQ(CUDA_SUCCESS, cuArrayDestroy(array_)); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  operator CUarray() const { return array_; }

 private:
  CUarray array_ = nullptr;
};

// A box of bytes as a host sees it: what an array must hold.
struct Box {
  size_t width, height, depth;
  ByteVector bytes = ByteVector(width * height * depth);

  unsigned char* at(size_t x, size_t y, size_t z) { return &bytes[(z * height + y) * width + x]; }
};

// Part of a box: where it begins and how large it is, in bytes, rows and slices.
struct Part {
  size_t x, y, z;
  size_t width, height, depth;
};

CUDA_MEMCPY3D shape_of(const Part& part) {
  CUDA_MEMCPY3D shape{};
  shape.WidthInBytes = part.width;
  shape.Height = part.height;
  shape.Depth = part.depth;
  return shape;
}

void from_host(CUDA_MEMCPY3D& shape, const Box& box, const Part& part) {
  shape.srcMemoryType = CU_MEMORYTYPE_HOST;
  shape.srcHost = box.bytes.data();
  shape.srcPitch = box.width;
  shape.srcHeight = box.height;
  shape.srcXInBytes = part.x, shape.srcY = part.y, shape.srcZ = part.z;
}

void to_host(CUDA_MEMCPY3D& shape, Box& box, const Part& part) {
  shape.dstMemoryType = CU_MEMORYTYPE_HOST;
  shape.dstHost = box.bytes.data();
  shape.dstPitch = box.width;
  shape.dstHeight = box.height;
  shape.dstXInBytes = part.x, shape.dstY = part.y, shape.dstZ = part.z;
}

void from_array(CUDA_MEMCPY3D& shape, CUarray array, const Part& part) {
  shape.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  shape.srcArray = array;
  shape.srcXInBytes = part.x, shape.srcY = part.y, shape.srcZ = part.z;
}

void to_array(CUDA_MEMCPY3D& shape, CUarray array, const Part& part) {
  shape.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  shape.dstArray = array;
  shape.dstXInBytes = part.x, shape.dstY = part.y, shape.dstZ = part.z;
}

void write_part(CUarray to, const Box& from, const Part& part) {
  CUDA_MEMCPY3D shape = shape_of(part);
  from_host(shape, from, part);
  to_array(shape, to, part);
  CU_OK(cuMemcpy3D(&shape));
  settle();
}

ByteVector read_all(CUarray from, size_t width, size_t height, size_t depth) {
  Box box{width, height, depth};
  const Part all{0, 0, 0, width, height, depth};
  CUDA_MEMCPY3D shape = shape_of(all);
  from_array(shape, from, all);
  to_host(shape, box, all);
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpy3D(&shape));
  return box.bytes;
}

TEST_F(DriverArrays, SayWhatTheyAre) {
  const auto what = described(40, 30, 20, CU_AD_FORMAT_HALF, 4, CUDA_ARRAY3D_SURFACE_LDST);
  const Array box(what);
  CUDA_ARRAY3D_DESCRIPTOR told{};
  CU_OK(cuArray3DGetDescriptor(&told, box));
  EXPECT_EQ(told.Width, what.Width);
  EXPECT_EQ(told.Height, what.Height);
  EXPECT_EQ(told.Depth, what.Depth);
  EXPECT_EQ(told.Format, what.Format);
  EXPECT_EQ(told.NumChannels, what.NumChannels);
  EXPECT_EQ(told.Flags, what.Flags);

  CUarray flat = nullptr;
  const CUDA_ARRAY_DESCRIPTOR line{1000, 0, CU_AD_FORMAT_FLOAT, 2};
  CU_OK(cuArrayCreate(&flat, &line));
  CUDA_ARRAY_DESCRIPTOR seen{};
  CU_OK(cuArrayGetDescriptor(&seen, flat));
  EXPECT_EQ(seen.Width, 1000u);
  EXPECT_EQ(seen.Height, 0u);
  EXPECT_EQ(seen.Format, CU_AD_FORMAT_FLOAT);
  EXPECT_EQ(seen.NumChannels, 2u);
  CU_OK(cuArray3DGetDescriptor(&told, flat));
  EXPECT_EQ(told.Depth, 0u);
  EXPECT_EQ(told.Flags, 0u);
  CU_OK(cuArrayDestroy(flat));
  EXPECT_EQ(cuArrayDestroy(flat), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuArray3DGetDescriptor(&told, flat), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverArrays, OfShapesThatAreNoneAreRefused) {
  const auto refused = [](const CUDA_ARRAY3D_DESCRIPTOR& what) {
    CUarray array = nullptr;
    return cuArray3DCreate(&array, &what);
  };
  EXPECT_EQ(refused(described(0, 4, 0)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused(described(4, 0, 4)), CUDA_ERROR_INVALID_VALUE) << "slices without rows";
  EXPECT_EQ(refused(described(131073, 0, 0)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused(described(16385, 1, 1)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused(described(8, 8, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP)),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused(described(8, 8, 0, CU_AD_FORMAT_FLOAT, 3)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused(described(8, 8, 0, CU_AD_FORMAT_NV12, 1)), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(refused(described(8, 8, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE)),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(refused(described(16384, 16384, 16384)), CUDA_ERROR_OUT_OF_MEMORY);
  const Array layers(described(8, 0, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED));
  const Array cube(described(8, 8, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP));
}

TEST_F(DriverArrays, TakeMemoryAndGiveItBack) {
  size_t before = 0, during = 0, after = 0, total = 0;
  CU_OK(cuMemGetInfo(&before, &total));
  {
    const Array array(described(1 << 10, 1 << 10, 0, CU_AD_FORMAT_FLOAT, 4));
    CU_OK(cuMemGetInfo(&during, &total));
    EXPECT_GE(before - during, size_t{16} << 20);
  }
  CU_OK(cuMemGetInfo(&after, &total));
  EXPECT_EQ(after, before);
}

TEST_F(DriverArrays, OneDimensionalOnesHaveCopiesOfTheirOwn) {
  constexpr size_t kSize = 100000;
  const Array a(described(kSize, 0, 0));
  const Array b(described(kSize, 0, 0));
  const DeviceMemory device(kSize);
  const DriverStream stream;
  const ByteVector sent = make_bytes(kSize, 1);
  CU_OK(cuMemcpyHtoA(a, 0, sent.data(), kSize));
  settle();
  CU_OK(cuMemcpyAtoA(b, 10, a, 30, kSize - 50));
  CU_OK(cuMemcpyAtoD(device.address(), b, 10, kSize - 50));
  CU_OK(cuMemcpyDtoA(b, 0, device.address() + 1, 7));
  settle();
  ByteVector expected(kSize - 50);
  std::copy_n(sent.begin() + 30, kSize - 50, expected.begin());
  ByteVector received(kSize - 50);
  CU_OK(cuMemcpyDtoH(received.data(), device.address(), received.size()));
  EXPECT_EQ(received, expected);
  CU_OK(cuMemcpyAtoHAsync(received.data(), b, 0, 7, stream));
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(std::memcmp(received.data(), &expected[1], 7), 0);
  CU_OK(cuMemcpyHtoAAsync(a, 5, sent.data(), 20, stream));
  CU_OK(cuStreamSynchronize(stream));
  CU_OK(cuMemcpyAtoH(received.data(), a, 0, 30));
  EXPECT_EQ(std::memcmp(received.data(), sent.data(), 5), 0);
  EXPECT_EQ(std::memcmp(&received[5], sent.data(), 20), 0);

  EXPECT_EQ(cuMemcpyHtoA(a, kSize - 3, sent.data(), 4), CUDA_ERROR_INVALID_VALUE);
  const Array rows(described(8, 8, 0));
  EXPECT_EQ(cuMemcpyHtoA(rows, 0, sent.data(), 8), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverArrays, WhatDoesNotFitIsRefusedAndChangesNothing) {
  Box box{16, 4, 3, make_bytes(16 * 4 * 3, 2)};
  const Array array(described(4, 4, 3, CU_AD_FORMAT_FLOAT));
  write_part(array, box, {0, 0, 0, 16, 4, 3});
  const Part bad[] = {{4, 0, 0, 16, 1, 1}, {0, 1, 0, 16, 4, 1}, {0, 0, 3, 16, 1, 1},
                      {2, 0, 0, 4, 1, 1},  {0, 0, 0, 6, 1, 1},  {0, SIZE_MAX, 0, 4, 2, 1},
                      {0, 0, 0, 20, 1, 1}, {0, 0, 1, 16, 4, 3}};
  for (const Part& part : bad) {
    CUDA_MEMCPY3D shape = shape_of(part);
    from_host(shape, box, {0, 0, 0, 0, 0, 0});
    to_array(shape, array, part);
    EXPECT_EQ(cuMemcpy3D(&shape), CUDA_ERROR_INVALID_VALUE) << &part - bad;
  }
  CUDA_MEMCPY2D none{};
  none.srcMemoryType = CU_MEMORYTYPE_HOST;
  none.srcHost = box.bytes.data();
  none.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  none.WidthInBytes = 4;
  none.Height = 1;
  EXPECT_EQ(cuMemcpy2D(&none), CUDA_ERROR_INVALID_VALUE) << "no array";
  EXPECT_EQ(read_all(array, 16, 4, 3), box.bytes);
}

// Parts of random boxes go to an array, to a second one, and to the host, each step remembered by
// a box of the host's.
TEST_F(DriverArrays, HoldWhatABoxWould) {
  std::mt19937 random(7);
  const auto below = [&](size_t end) { return random() % end; };
  DriverStream stream;
  for (int round = 0; round < 40; ++round) {
    const size_t element = size_t{1} << below(5);
    const unsigned channels = element >= 4 ? static_cast<unsigned>(element / 4) : 1;
    const CUarray_format format = element == 1   ? CU_AD_FORMAT_SIGNED_INT8
                                  : element == 2 ? CU_AD_FORMAT_UNSIGNED_INT16
                                                 : CU_AD_FORMAT_SIGNED_INT32;
    const size_t width = 1 + below(200), height = 1 + below(40), depth = 1 + below(9);
    const bool flat = depth == 1;
    const auto what = described(width, height, flat ? 0 : depth, format, channels);
    const Array first(what);
    const Array second(what);
    const size_t row = width * element;
    Box expected{row, height, depth, make_bytes(row * height * depth, 3)};
    const Part all{0, 0, 0, row, height, depth};
    write_part(first, expected, all);
    write_part(second, expected, all);

    const auto any_part = [&] {
      Part part{below(width), below(height), below(depth), 0, 0, 0};
      part.width = (1 + below(width - part.x)) * element;
      part.x *= element;
      part.height = 1 + below(height - part.y);
      part.depth = 1 + below(depth - part.z);
      return part;
    };
    // Bytes of the host's into a part of the first.
    const Part in = any_part();
    Box fresh{in.width, in.height, in.depth,
              make_bytes(in.width * in.height * in.depth, 100u + static_cast<unsigned>(round))};
    CUDA_MEMCPY3D shape = shape_of(in);
    from_host(shape, fresh, {0, 0, 0, 0, 0, 0});
    to_array(shape, first, in);
    CU_OK(cuMemcpy3DAsync(&shape, stream));
    // The same part of the second from the first.
    shape = shape_of(in);
    from_array(shape, first, in);
    to_array(shape, second, in);
    CU_OK(cuMemcpy3DAsync(&shape, stream));
    CU_OK(cuStreamSynchronize(stream));
    for (size_t z = 0; z < in.depth; ++z) {
      for (size_t y = 0; y < in.height; ++y) {
        std::memcpy(expected.at(in.x, in.y + y, in.z + z), fresh.at(0, y, z), in.width);
      }
    }
    EXPECT_EQ(read_all(first, row, height, depth), expected.bytes) << round;
    EXPECT_EQ(read_all(second, row, height, depth), expected.bytes) << round;
    // Any part of the second to device memory.
    const Part out = any_part();
    const DeviceMemory device(out.width * out.height * out.depth);
    shape = shape_of(out);
    from_array(shape, second, out);
    shape.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    shape.dstDevice = device.address();
    shape.dstPitch = out.width;
    shape.dstHeight = out.height;
    CU_OK(cuMemcpy3DAsync(&shape, stream));
    CU_OK(cuStreamSynchronize(stream));
    const ByteVector received = device.read();
    for (size_t z = 0; z < out.depth; ++z) {
      for (size_t y = 0; y < out.height; ++y) {
        const void* got = &received[(z * out.height + y) * out.width];
        EXPECT_EQ(std::memcmp(got, expected.at(out.x, out.y + y, out.z + z), out.width), 0);
      }
    }
  }
}

// Large enough for several messages, by rows that lie apart on both sides.
TEST_F(DriverArrays, LargeOnesByRowsWithPitch) {
  constexpr size_t kWidth = 3001 * 4, kHeight = 300, kPitch = kWidth + 12;
  const Array array(described(kWidth / 4, kHeight, 0, CU_AD_FORMAT_UNSIGNED_INT32));
  const PinnedMemory pinned(kPitch * kHeight);
  const ByteVector sent = make_bytes(kPitch * kHeight, 4);
  std::memcpy(pinned.data(), sent.data(), sent.size());
  const DriverStream stream;
  CUDA_MEMCPY2D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = pinned.data();
  in.srcPitch = kPitch;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = array;
  in.WidthInBytes = kWidth;
  in.Height = kHeight;
  CU_OK(cuMemcpy2DAsync(&in, stream));
  CU_OK(cuStreamSynchronize(stream));
  ByteVector received(kWidth * kHeight);
  CUDA_MEMCPY2D out{};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = array;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = received.data();
  out.dstPitch = kWidth;
  out.WidthInBytes = kWidth;
  out.Height = kHeight;
  CU_OK(cuMemcpy2DUnaligned(&out));
  for (size_t y = 0; y < kHeight; ++y) {
    ASSERT_EQ(std::memcmp(&received[y * kWidth], &sent[y * kPitch], kWidth), 0) << y;
  }
}

TEST_F(DriverArrays, InABatchCountElements) {
  constexpr size_t kWidth = 20, kHeight = 5;
  const Array array(described(kWidth, kHeight, 0, CU_AD_FORMAT_FLOAT, 2));
  Box sent{kWidth * 8, kHeight, 1, make_bytes(kWidth * 8 * kHeight, 5)};
  Box received{6 * 8, 2, 1};
  const DriverStream stream;
  CUDA_MEMCPY3D_BATCH_OP copies[2] = {};
  copies[0].src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  copies[0].src.op.ptr.ptr = reinterpret_cast<CUdeviceptr>(sent.bytes.data());
  copies[0].dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  copies[0].dst.op.array.array = array;
  copies[0].extent = {kWidth, kHeight, 1};
  copies[1].src = copies[0].dst;
  copies[1].src.op.array.offset = {3, 2, 0};
  copies[1].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  copies[1].dst.op.ptr.ptr = reinterpret_cast<CUdeviceptr>(received.bytes.data());
  copies[1].extent = {6, 2, 1};
  for (auto& copy : copies) copy.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  CU_OK(cuMemcpy3DBatchAsync(2, copies, 0, stream));
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(std::memcmp(received.at(0, 0, 0), sent.at(24, 2, 0), 48), 0);
  EXPECT_EQ(std::memcmp(received.at(0, 1, 0), sent.at(24, 3, 0), 48), 0);
  copies[1].extent = {18, 1, 1};
  EXPECT_EQ(cuMemcpy3DBatchAsync(1, &copies[1], 0, stream), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverArrays, InAGraphAreToldAsTheyWereNamed) {
  Box sent{32, 6, 2, make_bytes(32 * 6 * 2, 6)};
  const Array array(described(32, 6, 2));
  const Part part{5, 1, 1, 20, 4, 1};
  CUDA_MEMCPY3D shape = shape_of(part);
  from_host(shape, sent, part);
  to_array(shape, array, part);
  write_part(array, Box{32, 6, 2}, {0, 0, 0, 32, 6, 2});
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CU_OK(cuGraphCreate(&graph, 0));
  CU_OK(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &shape, context_));
  CUDA_MEMCPY3D told{};
  CU_OK(cuGraphMemcpyNodeGetParams(node, &told));
  EXPECT_EQ(told.dstMemoryType, CU_MEMORYTYPE_ARRAY);
  EXPECT_EQ(told.dstArray, static_cast<CUarray>(array));
  EXPECT_EQ(told.dstXInBytes, 5u);
  EXPECT_EQ(told.dstY, 1u);
  EXPECT_EQ(told.dstZ, 1u);
  // Refused parameters leave the node as it was.
  CUDA_MEMCPY3D bad = shape;
  bad.dstXInBytes = 30;
  EXPECT_EQ(cuGraphMemcpyNodeSetParams(node, &bad), CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuGraphMemcpyNodeSetParams(node, &told));
  CUgraphExec exec = nullptr;
  CU_OK(cuGraphInstantiate(&exec, graph, 0));
  const DriverStream stream;
  CU_OK(cuGraphLaunch(exec, stream));
  CU_OK(cuStreamSynchronize(stream));
  Box expected{32, 6, 2};
  for (size_t y = 1; y < 5; ++y) std::memcpy(expected.at(5, y, 1), sent.at(5, y, 1), 20);
  EXPECT_EQ(read_all(array, 32, 6, 2), expected.bytes);
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
}

TEST_F(DriverArrays, EndWithTheirContext) {
  CUcontext own = nullptr;
  CU_OK(cuCtxCreate(&own, nullptr, 0, device_));
  CUarray array = nullptr;
  const auto what = described(16, 0, 0);
  CU_OK(cuArray3DCreate(&array, &what));
  CU_OK(cuCtxDestroy(own));
  CU_OK(cuCtxSetCurrent(context_));
  CUDA_ARRAY3D_DESCRIPTOR told{};
  EXPECT_EQ(cuArray3DGetDescriptor(&told, array), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace sealane::test
