// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do the copies of a batch arrive, in the order the stream promises, is a source read when its
// attributes say so, and which copy is named when one is refused?

#include <cstring>

#include "cuda/driver.h"

namespace sealane::test {
namespace {

using BatchWithIndex = CUresult(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*,
                                size_t*, size_t, size_t*, CUstream);
using BlocksWithIndex = CUresult(size_t, CUDA_MEMCPY3D_BATCH_OP*, size_t*, unsigned long long,
                                 CUstream);

template <typename Function>
Function* variant(const char* name, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  EXPECT_EQ(cuGetProcAddress(name, &found, version, flags, &status), CUDA_SUCCESS);
  EXPECT_NE(found, nullptr) << name;
  return reinterpret_cast<Function*>(found);
}

CUmemcpyAttributes reading(CUmemcpySrcAccessOrder order) {
  CUmemcpyAttributes out{};
  out.srcAccessOrder = order;
  return out;
}

CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

// The lists a batch is made of, all copies with the same attributes unless a test says otherwise.
struct Batch {
  std::vector<CUdeviceptr> to, from;
  std::vector<size_t> sizes;
  std::vector<CUmemcpyAttributes> attributes = {reading(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)};
  std::vector<size_t> starts = {0};

  void add(CUdeviceptr target, CUdeviceptr source, size_t size) {
    to.push_back(target);
    from.push_back(source);
    sizes.push_back(size);
  }
  CUresult submit(CUstream stream) {
    return cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), to.size(), attributes.data(),
                              starts.data(), starts.size(), stream);
  }
};

class DriverBatch : public DriverTest {};

TEST_F(DriverBatch, GoesBothWaysAndWithinTheDeviceAtOnce) {
  constexpr size_t kSize = 300001;
  DriverStream stream;
  DeviceMemory in(kSize), there(kSize), elsewhere(kSize);
  PinnedMemory back(kSize);
  const ByteVector sent = make_bytes(kSize, 61);
  const ByteVector held = make_bytes(kSize, 62);
  there.write(held);
  Batch batch;
  batch.add(in.address(), address(sent.data()), kSize);
  batch.add(address(back.data()), there.address(), kSize);
  batch.add(elsewhere.address(), there.address(), kSize);
  CU_OK(batch.submit(stream));
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(in.read(), sent);
  EXPECT_EQ(elsewhere.read(), held);
  EXPECT_EQ(std::memcmp(back.data(), held.data(), kSize), 0);
}

TEST_F(DriverBatch, IsBehindWhatIsBeforeItAndBeforeWhatIsBehindIt) {
  constexpr size_t kCount = 40;
  constexpr size_t kSize = 5000;
  DriverStream stream;
  DeviceMemory device(kCount * kSize);
  PinnedMemory host(kCount * kSize);
  PinnedMemory back(kCount * kSize);
  for (unsigned round = 1; round <= 5; ++round) {
    // What the batch sends is fetched by the copy before it in the stream.
    CU_OK(cuMemsetD8Async(device.address(), static_cast<unsigned char>(round), kCount * kSize,
                          stream));
    CU_OK(cuMemcpyDtoHAsync(host.data(), device.address(), kCount * kSize, stream));
    CU_OK(cuMemsetD8Async(device.address(), 0, kCount * kSize, stream));
    Batch batch;
    for (size_t i = 0; i < kCount; ++i) {
      batch.add(device.address() + i * kSize, address(host.data() + i * kSize), kSize);
    }
    CU_OK(batch.submit(stream));
    CU_OK(cuMemcpyDtoHAsync(back.data(), device.address(), kCount * kSize, stream));
    CU_OK(cuStreamSynchronize(stream));
    EXPECT_EQ(ByteVector(back.data(), back.data() + kCount * kSize),
              ByteVector(kCount * kSize, static_cast<unsigned char>(round)));
  }
}

TEST_F(DriverBatch, SourcesReadDuringTheCallMayChangeAfterIt) {
  constexpr size_t kSize = 200000;
  DriverStream stream;
  DeviceMemory first(kSize), second(kSize);
  PinnedMemory pinned(kSize);
  ByteVector pageable = make_bytes(kSize, 63);
  const ByteVector sent = pageable;
  std::memcpy(pinned.data(), sent.data(), kSize);
  Batch batch;
  batch.add(first.address(), address(pageable.data()), kSize);
  batch.add(second.address(), address(pinned.data()), kSize);
  batch.attributes = {reading(CU_MEMCPY_SRC_ACCESS_ORDER_ANY),
                      reading(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL)};
  batch.starts = {0, 1};
  CU_OK(batch.submit(stream));
  std::memset(pinned.data(), 0xee, kSize);
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(first.read(), sent);
  EXPECT_EQ(second.read(), sent);
}

TEST_F(DriverBatch, EveryCopyNeedsAttributes) {
  DriverStream stream;
  DeviceMemory device(16);
  const ByteVector host(16);
  Batch good;
  good.add(device.address(), address(host.data()), 8);
  good.add(device.address() + 8, address(host.data()), 8);
  const auto refused = [&](auto&& spoil) {
    Batch bad = good;
    spoil(bad);
    return bad.submit(stream) == CUDA_ERROR_INVALID_VALUE;
  };
  const auto stream_order = good.attributes[0];
  EXPECT_TRUE(refused([](Batch& b) { b.attributes.clear(), b.starts.clear(); }));
  EXPECT_TRUE(refused([](Batch& b) { b.starts[0] = 1; }));
  EXPECT_TRUE(refused(
      [](Batch& b) { b.attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID; }));
  EXPECT_TRUE(refused([&](Batch& b) { b.attributes.push_back(stream_order), b.starts = {0, 0}; }));
  EXPECT_TRUE(refused([&](Batch& b) { b.attributes.push_back(stream_order), b.starts = {0, 2}; }));
  EXPECT_TRUE(refused([&](Batch& b) {
    b.attributes.resize(3, stream_order), b.starts = {0, 1, 2};
  }));
  EXPECT_EQ(good.submit(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_VALUE);
  for (CUstream one : {static_cast<CUstream>(stream), CU_STREAM_PER_THREAD}) {
    CU_EXPECT_OK(good.submit(one));
    CU_EXPECT_OK(cuStreamSynchronize(one));  // both write the same bytes
  }
}

TEST_F(DriverBatch, TheFirstVariantTellsWhichCopyWasRefused) {
  const auto batch_copy = variant<BatchWithIndex>("cuMemcpyBatchAsync", 12080);
  DriverStream stream;
  DeviceMemory device(64);
  const ByteVector host = make_bytes(64, 64);
  Batch batch;
  for (size_t i = 0; i < 4; ++i) batch.add(device.address() + 16 * i, address(host.data()), 16);
  size_t failed = 99;
  const auto submit = [&] {
    return batch_copy(batch.to.data(), batch.from.data(), batch.sizes.data(), batch.to.size(),
                      batch.attributes.data(), batch.starts.data(), batch.starts.size(), &failed,
                      stream);
  };
  CU_EXPECT_OK(submit());
  batch.to[2] = device.address() + 60;  // ends behind the allocation
  batch.sizes[2] = 1 << 20;
  EXPECT_EQ(submit(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(failed, 2u);
  batch.starts[0] = 7;
  EXPECT_EQ(submit(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(failed, SIZE_MAX);
  CU_EXPECT_OK(cuStreamSynchronize(stream));
}

TEST_F(DriverBatch, SoDoesTheOneForBlocks) {
  const auto batch_copy = variant<BlocksWithIndex>("cuMemcpy3DBatchAsync", 12080);
  DriverStream stream;
  DeviceMemory device(64);
  const ByteVector host = make_bytes(64, 65);
  CUDA_MEMCPY3D_BATCH_OP blocks[2] = {};
  for (auto& block : blocks) {
    block.src.type = block.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    block.src.op.ptr.ptr = address(host.data());
    block.dst.op.ptr.ptr = device.address();
    block.extent = {16, 2, 2};
    block.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  }
  size_t failed = 99;
  CU_EXPECT_OK(batch_copy(2, blocks, &failed, 0, stream));
  CU_EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(device.read(), host);
  blocks[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
  EXPECT_EQ(batch_copy(2, blocks, &failed, 0, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(failed, 1u);
  EXPECT_EQ(batch_copy(2, blocks, &failed, 1, stream), CUDA_ERROR_INVALID_VALUE) << "flags";
  EXPECT_EQ(failed, SIZE_MAX);
  CU_EXPECT_OK(cuStreamSynchronize(stream));
}

// Lengths whose product, or whose end, has more than 64 bits.
TEST_F(DriverBatch, LengthsThatAreNoneAreRefused) {
  const auto batch_copy = variant<BlocksWithIndex>("cuMemcpy3DBatchAsync", 12080);
  DriverStream stream;
  DeviceMemory device(4096);
  const ByteVector before = device.read();
  const ByteVector host = make_bytes(4096, 66);
  CUDA_MEMCPY3D_BATCH_OP block = {};
  block.src.type = block.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  block.src.op.ptr.ptr = address(host.data());
  block.dst.op.ptr.ptr = device.address();
  block.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t failed = 99;
  constexpr size_t kHalf = size_t{1} << 63;
  for (const CUextent3D& extent : {CUextent3D{kHalf + 256, 2, 1}, CUextent3D{kHalf + 64, 2, 2},
                                   CUextent3D{256, kHalf + 1, 2}, CUextent3D{16, 16, kHalf / 8}}) {
    block.extent = extent;
    EXPECT_EQ(batch_copy(1, &block, &failed, 0, stream), CUDA_ERROR_INVALID_VALUE) << extent.width;
  }
  Batch batch;
  batch.add(device.address() + 64, address(host.data()) + 64, size_t{0} - 64);
  EXPECT_EQ(batch.submit(stream), CUDA_ERROR_INVALID_VALUE);
  CU_EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(device.read(), before);
}

}  // namespace
}  // namespace sealane::test
