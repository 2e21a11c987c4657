// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does memory obey the driver API's rules: allocation, pools, attributes, and the error of every
// misuse?

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "cuda/driver.h"
#include "cuda/gate.h"

namespace sealane::test {
namespace {

class DriverMemory : public DriverTest {};

TEST_F(DriverMemory, AllocationsAreAlignedAndApart) {
  DeviceMemory a(1);
  DeviceMemory b(100);
  EXPECT_EQ(a.address() % 256, 0u);
  EXPECT_EQ(b.address() % 256, 0u);
  EXPECT_NE(a.address(), b.address());
}

TEST_F(DriverMemory, FreeMemoryShrinksAndGrows) {
  size_t before = 0;
  size_t during = 0;
  size_t total = 0;
  CU_OK(cuMemGetInfo(&before, &total));
  EXPECT_LE(before, total);
  {
    DeviceMemory held(64 << 20);
    CU_OK(cuMemGetInfo(&during, &total));
    EXPECT_LE(during + (64 << 20), before);
  }
  CU_OK(cuMemGetInfo(&during, &total));
  EXPECT_EQ(during, before);
}

TEST_F(DriverMemory, TooMuchIsOutOfMemory) {
  size_t total = 0;
  CU_OK(cuDeviceTotalMem(&total, device_));
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
  CU_EXPECT_OK(cuMemAlloc(&address, 256));  // the failure did not stick
  CU_EXPECT_OK(cuMemFree(address));
}

TEST_F(DriverMemory, NothingIsNoAllocation) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemory, FreeingTwiceOrInTheMiddleIsInvalid) {
  CUdeviceptr address = 0;
  CU_OK(cuMemAlloc(&address, 4096));
  EXPECT_EQ(cuMemFree(address + 256), CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemFree(address));
  EXPECT_EQ(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemory, CopiesToFreedMemoryAreInvalid) {
  CUdeviceptr address = 0;
  CU_OK(cuMemAlloc(&address, 4096));
  CU_OK(cuMemFree(address));
  ByteVector host(16);
  EXPECT_EQ(cuMemcpyHtoD(address, host.data(), 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(host.data(), address, 16), CUDA_ERROR_INVALID_VALUE);
  CU_EXPECT_OK(cuCtxSynchronize());
}

TEST_F(DriverMemory, CopiesPastTheEndAreInvalid) {
  DeviceMemory device(4096);
  ByteVector host(8192);
  EXPECT_EQ(cuMemcpyHtoD(device.address() + 4000, host.data(), 4096), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(host.data(), device.address(), 4 << 20), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD8(device.address() + 1, 0, 4 << 20), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemory, AddressRangeFindsTheAllocation) {
  DeviceMemory device(5000);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  CU_OK(cuMemGetAddressRange(&base, &bytes, device.address() + 4999));
  EXPECT_EQ(base, device.address());
  EXPECT_EQ(bytes, 5000u);
}

TEST_F(DriverMemory, PointerAttributesOfDeviceMemory) {
  DeviceMemory device(256);
  CUmemorytype type{};
  CU_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device.address()));
  EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
  CUcontext context = nullptr;
  CU_OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, device.address()));
  EXPECT_EQ(context, context_);
  int ordinal = -1;
  CU_OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device.address() + 9));
  EXPECT_EQ(ordinal, 0);
}

TEST_F(DriverMemory, PointerAttributesOfHostMemory) {
  PinnedMemory pinned(256);
  const auto address = reinterpret_cast<CUdeviceptr>(pinned.data());
  void* host = nullptr;
  CU_OK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address));
  EXPECT_EQ(host, pinned.data());
  const auto pageable = std::make_unique<char[]>(256);
  CUmemorytype type{};
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  reinterpret_cast<CUdeviceptr>(pageable.get())),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemory, FreeingUnknownHostMemoryIsInvalid) {
  const auto pageable = std::make_unique<char[]>(256);
  EXPECT_EQ(cuMemFreeHost(pageable.get()), CUDA_ERROR_INVALID_VALUE);
}

// Confidential mode refuses to register host memory; nothing else may break because of that.
TEST_F(DriverMemory, RegisteredHostMemoryWorksOrIsRefused) {
  constexpr size_t kSize = 1 << 20;
  void* const memory =
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const CUresult registered = cuMemHostRegister(memory, kSize, 0);
  const ByteVector sent = make_bytes(kSize, 12);
  std::memcpy(memory, sent.data(), kSize);
  DeviceMemory device(kSize);
  CU_OK(cuMemcpyHtoDAsync(device.address(), memory, kSize, nullptr));
  CU_OK(cuCtxSynchronize());
  EXPECT_EQ(device.read(), sent);
  if (registered == CUDA_SUCCESS) {
    EXPECT_EQ(cuMemHostRegister(memory, kSize, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CU_EXPECT_OK(cuMemHostUnregister(memory));
    EXPECT_EQ(cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  } else {
    EXPECT_EQ(registered, CUDA_ERROR_NOT_SUPPORTED);
  }
  munmap(memory, kSize);
}

TEST_F(DriverMemory, PoolAllocationsAreInStreamOrder) {
  DriverStream stream;
  CUdeviceptr address = 0;
  CU_OK(cuMemAllocAsync(&address, 1 << 16, stream));
  CU_OK(cuMemsetD8Async(address, 0x3c, 1 << 16, stream));
  ByteVector received(1 << 16);
  CU_OK(cuMemcpyDtoHAsync(received.data(), address, received.size(), stream));
  CU_OK(cuMemFreeAsync(address, stream));
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(received, ByteVector(1 << 16, 0x3c));
}

// The free is called while the kernel still waits for its turn.
TEST_F(DriverMemory, AFreeInAStreamWaitsForTheKernelsBeforeIt) {
  constexpr uint32_t kWords = 256;
  const KernelModule kernels;
  const DeviceMemory kept(kWords * sizeof(uint32_t));
  DriverStream stream;
  Gate gate;
  CUdeviceptr address = 0;
  CU_OK(cuMemAllocAsync(&address, kept.bytes(), stream));
  CU_OK(cuLaunchHostFunc(stream, Gate::wait, gate.ticket()));
  kernels.launch(fill_kernel(address, kWords, 7), stream);
  CU_OK(cuMemcpyDtoDAsync(kept.address(), address, kept.bytes(), stream));
  CU_OK(cuMemFreeAsync(address, stream));
  EXPECT_EQ(cuMemFreeAsync(address, stream), CUDA_ERROR_INVALID_VALUE) << "it was freed already";
  gate.open();
  CU_OK(cuStreamSynchronize(stream));
  const ByteVector bytes = kept.read();
  const auto* words = reinterpret_cast<const uint32_t*>(bytes.data());
  for (uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(words[i], filled_word(7, i)) << i;
  EXPECT_EQ(cuMemcpyDtoDAsync(kept.address(), address, 16, stream), CUDA_ERROR_INVALID_VALUE)
      << "nobody may use it any more";
}

TEST_F(DriverMemory, PlainMemoryMayBeFreedInStreamOrderToo) {
  DriverStream stream;
  void* pinned = nullptr;
  CU_OK(cuMemHostAlloc(&pinned, 1 << 16, 0));
  CUdeviceptr address = 0;
  CU_OK(cuMemAlloc(&address, 1 << 16));
  CU_OK(cuMemcpyHtoDAsync(address, pinned, 1 << 16, stream));
  CU_OK(cuMemFreeAsync(address, stream));
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(cuMemcpyHtoDAsync(address, pinned, 1 << 16, stream), CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuStreamSynchronize(stream));
  CU_OK(cuMemFreeHost(pinned));
}

TEST_F(DriverMemory, PoolsOfOnesOwn) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = 0;
  CUmemoryPool pool = nullptr;
  CU_OK(cuMemPoolCreate(&pool, &props));
  cuuint64_t threshold = 1 << 20;
  CU_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  threshold = 0;
  CU_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  EXPECT_EQ(threshold, cuuint64_t{1} << 20);
  DriverStream stream;
  CUdeviceptr address = 0;
  CU_OK(cuMemAllocFromPoolAsync(&address, 4096, pool, stream));
  cuuint64_t used = 0;
  CU_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_GE(used, 4096u);
  CU_OK(cuMemFreeAsync(address, stream));
  CU_OK(cuStreamSynchronize(stream));
  CU_OK(cuMemPoolTrimTo(pool, 0));
  CU_OK(cuMemPoolDestroy(pool));
}

TEST_F(DriverMemory, DefaultPoolIsTheCurrentOne) {
  CUmemoryPool standard = nullptr;
  CUmemoryPool current = nullptr;
  CU_OK(cuDeviceGetDefaultMemPool(&standard, device_));
  CU_OK(cuDeviceGetMemPool(&current, device_));
  EXPECT_EQ(standard, current);
}

TEST_F(DriverMemory, ManagedMemoryIsTheHostsAndTheDevices) {
  constexpr uint32_t kWords = 256;
  const KernelModule kernels;
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAllocManaged(&address, 64, 0), CUDA_ERROR_INVALID_VALUE) << "attached to whom?";
  CU_OK(cuMemAllocManaged(&address, kWords * sizeof(uint32_t), CU_MEM_ATTACH_GLOBAL));
  auto* words = reinterpret_cast<uint32_t*>(address);
  words[0] = 99;
  unsigned managed = 0;
  unsigned type = 0;
  CU_OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
  CU_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
  EXPECT_EQ(managed, 1u);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  {
    DriverStream stream;
    CU_OK(cuMemPrefetchAsync(address, kWords * sizeof(uint32_t), {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                             0, stream));
    kernels.launch(fill_kernel(address, kWords, 4), stream);
    CU_OK(cuStreamSynchronize(stream));
  }
  for (uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(words[i], filled_word(4, i)) << i;
  const DeviceMemory device(kWords * sizeof(uint32_t));
  CU_OK(cuMemcpyDtoD(device.address(), address, device.bytes()));
  settle();
  EXPECT_EQ(std::memcmp(device.read().data(), words, device.bytes()), 0);
  EXPECT_EQ(cuMemFreeHost(words), CUDA_ERROR_INVALID_VALUE) << "it is not pinned memory";
  CU_OK(cuMemFree(address));
  EXPECT_EQ(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
}

class DriverVirtualMemory : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the thread sanitizer leaves too little of the address space to reserve any";
#endif
    prop_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop_.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop_.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    access_.location = prop_.location;
    access_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CU_OK(cuMemGetAllocationGranularity(&step_, &prop_, 0));
  }
  CUmemGenericAllocationHandle create() {
    CUmemGenericAllocationHandle made = 0;
    CU_EXPECT_OK(cuMemCreate(&made, step_, &prop_, 0));
    return made;
  }

  CUmemAllocationProp prop_{};
  CUmemAccessDesc access_{};
  size_t step_ = 0;
};

// NCCL asks for the granularity of host memory, and gives up where it gets an error; that the
// memory itself cannot be made it takes in its stride.
TEST_F(DriverVirtualMemory, HostMemoryHasAGranularityAndIsRefused) {
  prop_.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  size_t step = 0;
  CU_OK(cuMemGetAllocationGranularity(&step, &prop_, 0));
  EXPECT_EQ(step, step_);
  CUmemGenericAllocationHandle made = 0;
  EXPECT_EQ(cuMemCreate(&made, step, &prop_, 0), CUDA_ERROR_NOT_SUPPORTED);
}

// As engines grow a segment: one range of addresses, memory mapped piece by piece.
TEST_F(DriverVirtualMemory, PiecesOfMemoryBecomeOneRange) {
  CUdeviceptr base = 0;
  CU_OK(cuMemAddressReserve(&base, 4 * step_, 0, 0, 0));
  ByteVector sent(2 * step_);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<unsigned char>(i * 31 >> 8);
  EXPECT_EQ(cuMemcpyHtoD(base, sent.data(), 16), CUDA_ERROR_INVALID_VALUE) << "nothing is there";
  const auto first = create();
  const auto second = create();
  CU_OK(cuMemMap(base, step_, 0, first, 0));
  EXPECT_EQ(cuMemMap(base, step_, 0, second, 0), CUDA_ERROR_INVALID_VALUE) << "it is taken";
  CU_OK(cuMemMap(base + step_, step_, 0, second, 0));
  EXPECT_EQ(cuMemcpyHtoD(base, sent.data(), 16), CUDA_ERROR_INVALID_VALUE) << "no access yet";
  CU_OK(cuMemSetAccess(base, 2 * step_, &access_, 1));
  CU_OK(cuMemRelease(first));  // the mapping keeps it
  CU_OK(cuMemcpyHtoD(base, sent.data(), sent.size()));
  settle();
  ByteVector received(sent.size());
  CU_OK(cuMemcpyDtoH(received.data(), base, received.size()));
  EXPECT_EQ(received, sent);
  EXPECT_EQ(cuMemFree(base), CUDA_ERROR_INVALID_VALUE) << "it was not allocated";
  EXPECT_EQ(cuMemAddressFree(base, 4 * step_), CUDA_ERROR_INVALID_VALUE) << "something is mapped";
  EXPECT_EQ(cuMemUnmap(base, step_ / 2), CUDA_ERROR_INVALID_VALUE) << "half of a mapping";
  CU_OK(cuMemUnmap(base, 2 * step_));
  EXPECT_EQ(cuMemcpyDtoH(received.data(), base, 16), CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemAddressFree(base, 4 * step_));
  CU_OK(cuMemRelease(second));
  EXPECT_EQ(cuMemRelease(second), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverVirtualMemory, KernelsAndDescriptorsReachTheSameMemory) {
  const KernelModule kernels;
  CUdeviceptr places[2] = {};
  const auto memory = create();
  int descriptor = -1;
  CU_OK(cuMemExportToShareableHandle(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                     0));
  CUmemGenericAllocationHandle again = 0;
  CU_OK(cuMemImportFromShareableHandle(&again,
                                       reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  const CUmemGenericAllocationHandle handles[2] = {memory, again};
  for (int i = 0; i < 2; ++i) {
    CU_OK(cuMemAddressReserve(&places[i], step_, 0, 0, 0));
    CU_OK(cuMemMap(places[i], step_, 0, handles[i], 0));
    CU_OK(cuMemSetAccess(places[i], step_, &access_, 1));
  }
  DriverStream stream;
  kernels.launch(fill_kernel(places[0], 64, 8), stream);
  CU_OK(cuStreamSynchronize(stream));
  uint32_t words[64] = {};
  CU_OK(cuMemcpyDtoH(words, places[1], sizeof words));
  for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(words[i], filled_word(8, i)) << i;
  size_t free_before = 0;
  size_t free_after = 0;
  size_t total = 0;
  CU_OK(cuMemGetInfo(&free_before, &total));
  for (int i = 0; i < 2; ++i) {
    CU_OK(cuMemUnmap(places[i], step_));
    CU_OK(cuMemAddressFree(places[i], step_));
    CU_OK(cuMemRelease(handles[i]));
  }
  close(descriptor);
  CU_OK(cuMemGetInfo(&free_after, &total));
  EXPECT_EQ(free_after - free_before, step_) << "it was counted once";
}

}  // namespace
}  // namespace sealane::test
