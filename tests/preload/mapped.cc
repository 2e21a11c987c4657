// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Pinned memory is mapped, as CUDA promises: the device has an address for it, kernels read and
// write it there and at the host's own address, memory operations of a stream reach it, and
// questions about it are answered so; also between copies that could be sealed ahead. With
// "register": memory of the program's own is registered; whoever asks for a mapping that cannot be
// had is told so by the call, and so is whoever registers what cannot be used: the context lives.
// Prints "ok".
//
//   mapped pinned|register

#include <cuda.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "emulated.h"

namespace {

constexpr size_t kBytes = 1500000;

CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

// Adds one to every byte.
void add_one(const sealane_emu_launch* launch) {
  const auto at = *static_cast<const uint64_t*>(launch->arguments[0]);
  auto* const memory = static_cast<uint8_t*>(launch->memory(launch, at, kBytes));
  if (memory == nullptr) return;
  for (size_t i = 0; i < kBytes; ++i) ++memory[i];
}

struct Device : OneDevice {
  Device() : OneDevice(kBytes) { kernel = make_kernel("add_one", add_one, 1); }
  void expect(const uint8_t* host, uint8_t value) {
    for (size_t i = 0; i < kBytes; ++i) {
      if (host[i] != value) fail("the host does not see what a kernel wrote", host[i]);
    }
    OK(cuMemcpyHtoDAsync(memory, host, kBytes, stream));
    OK(cuStreamSynchronize(stream));
    std::vector<uint8_t> back(kBytes);
    OK(cuMemcpyDtoH(back.data(), memory, kBytes));
    if (std::memcmp(back.data(), host, kBytes) != 0) fail("a copy of mapped memory is stale");
  }
  CUfunction kernel = nullptr;
};

void use(Device& device, uint8_t* host) {
  std::memset(host, 1, kBytes);
  CUdeviceptr there = 0;
  OK(cuMemHostGetDevicePointer(&there, host, 0));
  CUdeviceptr asked = 0;
  OK(cuPointerGetAttribute(&asked, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address(host)));
  if (asked != there) fail("two addresses for one place");
  unsigned mapped = 0;
  OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, address(host)));
  if (mapped == 0) fail("it says that it is not mapped");
  for (uint8_t round = 0; round < 8; ++round) {
    device.expect(host, static_cast<uint8_t>(1 + 2 * round));
    OK(launch(device.kernel, device.stream, {there}));
    OK(cuStreamSynchronize(device.stream));
    OK(launch(device.kernel, device.stream, {address(host)}));
    OK(cuStreamSynchronize(device.stream));
  }
  OK(cuStreamWriteValue32(device.stream, there + 64, 0x5ea1, 0));
  OK(cuStreamWaitValue32(device.stream, there + 64, 0x5ea1, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuStreamSynchronize(device.stream));
  uint32_t seen = 0;
  std::memcpy(&seen, host + 64, sizeof seen);
  if (seen != 0x5ea1) fail("a value was not written", static_cast<int>(seen));
}

void pinned(Device& device) {
  void* memory = nullptr;
  OK(cuMemAllocHost(&memory, kBytes));
  use(device, static_cast<uint8_t*>(memory));
  for (const unsigned flags :
       {0u, static_cast<unsigned>(CU_MEMHOSTALLOC_PORTABLE),
        static_cast<unsigned>(CU_MEMHOSTALLOC_DEVICEMAP),
        static_cast<unsigned>(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)}) {
    OK(cuMemHostAlloc(&memory, kBytes, flags));
    use(device, static_cast<uint8_t*>(memory));
    OK(cuMemFreeHost(memory));
  }
}

void refuse(Device& device, void* memory, unsigned flags, const char* what) {
  if (memory == MAP_FAILED) fail(what);
  if (cuMemHostRegister(memory, kBytes, flags) == CUDA_SUCCESS) fail(what);
  if (cuMemHostUnregister(memory) == CUDA_SUCCESS) fail(what);
  OK(cuStreamSynchronize(device.stream));
}

// Memory that is there, and cannot be copied.
void refuse_unusable(Device& device) {
  const auto map = [](int protection, int file) {
    const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    return mmap(nullptr, kBytes, protection, flags, file, 0);
  };
  void* const none = map(PROT_NONE, -1);
  refuse(device, none, 0, "memory that nobody may read is registered");
  refuse(device, none, CU_MEMHOSTREGISTER_READ_ONLY, "memory that nobody may read is registered");
  if (cuMemcpyHtoDAsync(device.memory, none, kBytes, device.stream) == CUDA_SUCCESS) {
    fail("memory that nobody may read is copied");
  }
  OK(cuStreamSynchronize(device.stream));
  void* const constant = map(PROT_READ, -1);
  refuse(device, constant, 0, "memory that nobody may write is registered");
  OK(cuMemHostRegister(constant, kBytes, CU_MEMHOSTREGISTER_READ_ONLY));
  device.expect(static_cast<uint8_t*>(constant), 0);
  OK(cuMemHostUnregister(constant));
  const int file = memfd_create("empty", 0);
  refuse(device, map(PROT_READ | PROT_WRITE, file), 0, "what is behind a file's end is registered");
  void* const gone = map(PROT_READ | PROT_WRITE, -1);
  munmap(static_cast<uint8_t*>(gone) + (kBytes / 2 & ~size_t{4095}), kBytes / 2);
  refuse(device, gone, 0, "memory that is half gone is registered");
  void* managed = nullptr;
  OK(cuMemAllocManaged(reinterpret_cast<CUdeviceptr*>(&managed), kBytes, CU_MEM_ATTACH_GLOBAL));
  refuse(device, managed, 0, "memory that the driver knows is registered");
}

// In confidential mode no driver can map it. Who asks for that must not be told that it is so.
void registered(Device& device) {
  void* const memory = std::aligned_alloc(4096, (kBytes + 4095) & ~size_t{4095});
  std::memset(memory, 1, kBytes);
  const CUresult asked = cuMemHostRegister(memory, kBytes, CU_MEMHOSTREGISTER_DEVICEMAP);
  if (asked == CUDA_SUCCESS) return use(device, static_cast<uint8_t*>(memory));
  if (asked != CUDA_ERROR_NOT_SUPPORTED) fail("another error", asked);
  OK(cuMemHostRegister(memory, kBytes, 0));
  CUdeviceptr there = 0;
  const CUresult none = cuMemHostGetDevicePointer(&there, memory, 0);
  if (none == CUDA_SUCCESS) fail("an address that no kernel can use");
  unsigned mapped = 0;
  OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, address(memory)));
  if (mapped != 0) fail("it says that it is mapped");
  device.expect(static_cast<uint8_t*>(memory), 1);
  OK(cuMemHostUnregister(memory));
  refuse_unusable(device);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "pinned";
  Device device;
  if (what == "register") {
    registered(device);
  } else {
    pinned(device);
  }
  std::puts("ok");
  return 0;
}
