// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Arrays of the runtime API: what they say of themselves, and every kind of copy to and from them.

#include <cstring>
#include <vector>

#include "cuda/runtime.h"

namespace sealane::test {
namespace {

class RuntimeArrays : public RuntimeTest {};

// A two-dimensional array of bytes.
class ByteArray {
 public:
  ByteArray(size_t width, size_t height) : width_(width), height_(height) {
    const cudaChannelFormatDesc bytes = cudaCreateChannelDesc(8, 0, 0, 0,  //
                                                              cudaChannelFormatKindUnsigned);
    EXPECT_EQ(cudaSuccess, cudaMallocArray(&array_, &bytes, width, height));
  }
  ~ByteArray() { EXPECT_EQ(cudaSuccess, cudaFreeArray(array_)); }
  ByteArray(const ByteArray&) = delete;
  ByteArray& operator=(const ByteArray&) = delete;

  operator cudaArray_t() const { return array_; }

  void write(const ByteVector& bytes) const {
    EXPECT_EQ(cudaSuccess, cudaMemcpy2DToArray(array_, 0, 0, bytes.data(), width_, width_, height_,
                                               cudaMemcpyHostToDevice));
    settle();
  }
  ByteVector read() const {
    ByteVector out(width_ * height_);
    EXPECT_EQ(cudaSuccess, cudaMemcpy2DFromArray(out.data(), width_, array_, 0, 0, width_, height_,
                                                 cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  cudaArray_t array_ = nullptr;
  size_t width_;
  size_t height_;
};

TEST_F(RuntimeArrays, SayWhatTheyAre) {
  const cudaChannelFormatDesc kinds[] = {
      cudaCreateChannelDesc(32, 32, 32, 32, cudaChannelFormatKindFloat),
      cudaCreateChannelDesc(16, 0, 0, 0, cudaChannelFormatKindFloat),
      cudaCreateChannelDesc(8, 8, 0, 0, cudaChannelFormatKindSigned),
      cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindUnsigned),
  };
  for (const cudaChannelFormatDesc& kind : kinds) {
    cudaArray_t array = nullptr;
    CUDA_OK(cudaMalloc3DArray(&array, &kind, make_cudaExtent(12, 10, 7), cudaArrayLayered));
    cudaChannelFormatDesc told{};
    cudaExtent extent{};
    unsigned flags = 0;
    CUDA_OK(cudaArrayGetInfo(&told, &extent, &flags, array));
    EXPECT_EQ(std::memcmp(&told, &kind, sizeof kind), 0);
    EXPECT_EQ(extent.width, 12u);
    EXPECT_EQ(extent.height, 10u);
    EXPECT_EQ(extent.depth, 7u);
    EXPECT_EQ(flags, static_cast<unsigned>(cudaArrayLayered));
    told = {};
    CUDA_OK(cudaGetChannelDesc(&told, array));
    EXPECT_EQ(std::memcmp(&told, &kind, sizeof kind), 0);
    CUDA_OK(cudaFreeArray(array));
  }
  CUDA_EXPECT_OK(cudaFreeArray(nullptr));
}

TEST_F(RuntimeArrays, OfElementsThatAreNoneAreRefused) {
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc bad[] = {
      cudaCreateChannelDesc(32, 32, 32, 0, cudaChannelFormatKindFloat),
      cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindFloat),
      cudaCreateChannelDesc(8, 16, 0, 0, cudaChannelFormatKindSigned),
      cudaCreateChannelDesc(0, 0, 0, 0, cudaChannelFormatKindUnsigned),
      cudaCreateChannelDesc(8, 0, 8, 0, cudaChannelFormatKindUnsigned),
      cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindNone),
  };
  for (const cudaChannelFormatDesc& kind : bad) {
    EXPECT_EQ(cudaMallocArray(&array, &kind, 8, 8), cudaErrorInvalidChannelDescriptor);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidChannelDescriptor);
  }
}

TEST_F(RuntimeArrays, CopiesByRows) {
  constexpr size_t kWidth = 70, kHeight = 20;
  const ByteArray a(kWidth, kHeight);
  const ByteArray b(kWidth, kHeight);
  const RuntimeStream stream;
  ByteVector expected = make_bytes(kWidth * kHeight, 1);
  a.write(expected);
  EXPECT_EQ(a.read(), expected);
  b.write(expected);
  const PinnedBytes pinned(30 * 10);
  const ByteVector part = make_bytes(30 * 10, 2);
  std::memcpy(pinned.data(), part.data(), part.size());
  CUDA_OK(
      cudaMemcpy2DToArrayAsync(a, 7, 3, pinned.data(), 30, 25, 10, cudaMemcpyHostToDevice, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  CUDA_OK(cudaMemcpy2DArrayToArray(b, 1, 2, a, 7, 3, 25, 10));
  settle();
  for (size_t y = 0; y < 10; ++y) {
    std::memcpy(&expected[(y + 2) * kWidth + 1], &part[y * 30], 25);
  }
  EXPECT_EQ(b.read(), expected);
  CUDA_OK(
      cudaMemcpy2DFromArrayAsync(pinned.data(), 30, b, 1, 2, 25, 10, cudaMemcpyDefault, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  for (size_t y = 0; y < 10; ++y) {
    EXPECT_EQ(std::memcmp(pinned.data() + y * 30, &part[y * 30], 25), 0) << y;
  }
}

TEST_F(RuntimeArrays, WrongDirectionsAndPlacesAreRefused) {
  const ByteArray array(16, 4);
  const ByteVector before = make_bytes(16 * 4, 3);
  array.write(before);
  ByteVector host(16 * 4);
  EXPECT_EQ(cudaMemcpy2DToArray(array, 0, 0, host.data(), 16, 16, 4, cudaMemcpyDeviceToHost),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy2DFromArray(host.data(), 16, array, 0, 0, 16, 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy2DToArray(array, 1, 0, host.data(), 16, 16, 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2DToArray(array, 0, 1, host.data(), 16, 16, 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2DToArray(array, 0, 0, host.data(), 15, 16, 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaMemcpy2DToArray(nullptr, 0, 0, host.data(), 16, 16, 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(array.read(), before);
}

// Where an array takes part, the extent and the position in it are elements, the position in
// memory is bytes.
TEST_F(RuntimeArrays, CopiesByBoxesCountElements) {
  const cudaChannelFormatDesc pairs = cudaCreateChannelDesc(32, 32, 0, 0,  //
                                                            cudaChannelFormatKindFloat);
  const cudaExtent extent = make_cudaExtent(9, 5, 4);
  cudaArray_t array = nullptr;
  CUDA_OK(cudaMalloc3DArray(&array, &pairs, extent));
  ByteVector sent = make_bytes(9 * 8 * 5 * 4, 4);
  cudaMemcpy3DParms in{};
  in.srcPtr = make_cudaPitchedPtr(sent.data(), 72, 72, 5);
  in.dstArray = array;
  in.extent = extent;
  in.kind = cudaMemcpyHostToDevice;
  CUDA_OK(cudaMemcpy3D(&in));
  settle();
  ByteVector received(4 * 8 * 2 * 2 + 8);
  cudaMemcpy3DParms out{};
  out.srcArray = array;
  out.srcPos = {3, 2, 1};
  out.dstPtr = make_cudaPitchedPtr(received.data(), 32, 32, 2);
  out.dstPos = {0, 0, 0};
  out.extent = make_cudaExtent(4, 2, 2);
  out.kind = cudaMemcpyDeviceToHost;
  const RuntimeStream stream;
  CUDA_OK(cudaMemcpy3DAsync(&out, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  for (size_t z = 0; z < 2; ++z) {
    for (size_t y = 0; y < 2; ++y) {
      const unsigned char* expected = &sent[((z + 1) * 5 + y + 2) * 72 + 3 * 8];
      EXPECT_EQ(std::memcmp(&received[(z * 2 + y) * 32], expected, 32), 0) << z << ' ' << y;
    }
  }
  // A graph's node says the same words again.
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaMemcpy3DParms told{};
  CUDA_OK(cudaGraphCreate(&graph, 0));
  CUDA_OK(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &out));
  CUDA_OK(cudaGraphMemcpyNodeGetParams(node, &told));
  EXPECT_EQ(told.srcArray, array);
  EXPECT_EQ(told.srcPos.x, 3u);
  EXPECT_EQ(told.srcPos.y, 2u);
  EXPECT_EQ(told.srcPos.z, 1u);
  EXPECT_EQ(told.extent.width, 4u);
  EXPECT_EQ(told.kind, cudaMemcpyDeviceToHost);
  CUDA_OK(cudaGraphDestroy(graph));
  CUDA_OK(cudaFreeArray(array));
}

// Bytes that run over the ends of rows, from every place of the first ones on.
TEST_F(RuntimeArrays, CopiesByBytesGoOnInTheNextRow) {
  constexpr size_t kWidth = 10, kHeight = 6;
  const ByteArray a(kWidth, kHeight);
  const ByteArray b(kWidth, kHeight);
  for (const size_t start : {0u, 1u, 9u, 10u, 17u}) {
    for (const size_t bytes : {0u, 1u, 9u, 10u, 11u, 25u, 40u}) {
      ByteVector expected = make_bytes(kWidth * kHeight, 5);
      const ByteVector fresh = make_bytes(bytes, static_cast<uint32_t>(start + 100));
      a.write(expected);
      b.write(expected);
      const size_t x = start % kWidth, y = start / kWidth;
      CUDA_OK(cudaMemcpyToArray(a, x, y, fresh.data(), bytes, cudaMemcpyHostToDevice));
      settle();
      std::copy(fresh.begin(), fresh.end(), expected.begin() + static_cast<long>(start));
      EXPECT_EQ(a.read(), expected) << start << ' ' << bytes;
      ByteVector back(bytes);
      CUDA_OK(cudaMemcpyFromArray(back.data(), a, x, y, bytes, cudaMemcpyDeviceToHost));
      EXPECT_EQ(back, fresh) << start << ' ' << bytes;
      CUDA_OK(cudaMemcpyArrayToArray(b, 3, 1, a, x, y, bytes));
      settle();
      ByteVector second = make_bytes(kWidth * kHeight, 5);
      std::copy(fresh.begin(), fresh.end(), second.begin() + 13);
      EXPECT_EQ(b.read(), second) << start << ' ' << bytes;
    }
  }
  const ByteVector much = make_bytes(kWidth * kHeight, 6);
  EXPECT_EQ(cudaMemcpyToArray(a, 1, 0, much.data(), much.size(), cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace sealane::test
