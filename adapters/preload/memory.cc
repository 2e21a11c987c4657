// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Allocations: what is device memory, what is pinned, and whose.

#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <optional>

#include "hooks.h"
#include "serve/options.h"

using namespace sealane::preload;
namespace serve = sealane::serve;
using sealane::Range;

namespace {

int current_device() {
  int device = 0;
  const CUcontext context = current_context();
  return context != nullptr && port().device_of(handle(context), device) == serve::kSuccess ? device
                                                                                            : -1;
}

void note_device(CUdeviceptr address, uint64_t bytes) {
  serve::Runtime::get()->device_memory().add({address, bytes},
                                             {current_device(), current_context()});
}

template <typename Next, typename Size>
CUresult allocate_device(const CUdeviceptr* address, Size size, const char* name, Next&& next) {
  const auto call = [&] {
    const CUresult result = next();
    if (result == CUDA_SUCCESS && serve::Runtime::get() != nullptr) note_device(*address, size());
    return result;
  };
  return plain(call, name, made_on_device(address, size));
}

CUresult free_device(CUdeviceptr address, CUresult (*next)(CUdeviceptr)) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr) return next(address);
  return runtime->free_device_memory(
      address, [&](const Range& range) { runtime->drain(range); }, [&] { return next(address); });
}

}  // namespace

SEALANE_SINGLE(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes),
               allocate_device(
                   address, [=] { return bytes; }, "cuMemAlloc",
                   [&] { return next(address, bytes); }))
SEALANE_SINGLE(cuMemAllocPitch_v2,
               (CUdeviceptr * address, size_t* pitch, size_t width, size_t height,
                unsigned element),
               allocate_device(
                   address, [=] { return *pitch * height; }, "cuMemAllocPitch",
                   [&] { return next(address, pitch, width, height, element); }))
SEALANE_SINGLE(cuMemFree_v2, (CUdeviceptr address),
               plain([&] { return free_device(address, next); }, "cuMemFree",
                     gone_from_device(address)))

namespace {

// Pinned memory of ours: private anonymous pages, which can be guarded and cannot be mapped. Only
// for programs of which it is said that they need no mapping ("pinned").
CUresult allocate_ours(void** memory, size_t bytes, unsigned flags) {
  if (memory == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const CUcontext context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = made;
  serve::Runtime::get()->add_host_memory({reinterpret_cast<uint64_t>(made), bytes},
                                         {true, false, flags, context});
  return CUDA_SUCCESS;
}

// Whoever wants to reach it from a kernel needs the driver's memory.
bool ours_to_allocate(unsigned flags) {
  return serve::Runtime::get() != nullptr && serve::Runtime::get()->owns_pinned() &&
         (flags & ~static_cast<unsigned>(CU_MEMHOSTALLOC_PORTABLE)) == 0;
}

template <typename Next>
CUresult allocate_pinned(void** memory, size_t bytes, unsigned flags, Next&& next) {
  const auto call = [&] {
    if (ours_to_allocate(flags)) return allocate_ours(memory, bytes, flags);
    const CUresult result = next();
    serve::Runtime* runtime = serve::Runtime::get();
    if (result == CUDA_SUCCESS && runtime != nullptr) {
      runtime->add_host_memory({reinterpret_cast<uint64_t>(*memory), bytes},
                               {false, false, flags, current_context()});
    }
    return result;
  };
  return plain(call, "cuMemHostAlloc", made_on_host(memory, bytes));
}

CUresult free_pinned(void* memory, CUresult (*next)(void*)) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr) return next(memory);
  const auto known = runtime->host_memory().find(reinterpret_cast<uint64_t>(memory));
  const bool whole = known && known->range.address == reinterpret_cast<uint64_t>(memory);
  if (!whole || known->what.registered) return next(memory);
  return runtime->free_host_memory(known->range.address, [&] {
    if (!known->what.ours) return next(memory);
    munmap(memory, known->range.bytes);
    return CUDA_SUCCESS;
  });
}

}  // namespace

SEALANE_SINGLE(cuMemAllocHost_v2, (void** memory, size_t bytes),
               allocate_pinned(memory, bytes, 0, [&] { return next(memory, bytes); }))
SEALANE_SINGLE(cuMemHostAlloc, (void** memory, size_t bytes, unsigned flags),
               allocate_pinned(memory, bytes, flags, [&] { return next(memory, bytes, flags); }))
SEALANE_SINGLE(cuMemFreeHost, (void* memory),
               plain([&] { return free_pinned(memory, next); }, called, gone_from_host(memory)))

// --- registration: the driver refuses it in CC mode, and programs that insist on it do not start.
// All it can mean there is that copies may be asynchronous, and that we can grant.

namespace {

// What CUDA promises of pinned memory, and what this cannot keep, is refused aloud, once.
void say_unmapped(const char* what) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  std::fprintf(stderr,
               "sealane: %s: in confidential mode a driver maps only memory that it allocated "
               "itself (cudaHostAlloc), so this is refused with 801\n",
               what);
}

template <typename Next>
CUresult register_memory(void* memory, size_t bytes, unsigned flags, Next&& next) {
  return plain([&] {
    const CUresult result = next();
    serve::Runtime* runtime = serve::Runtime::get();
    constexpr unsigned kGranted = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_READ_ONLY;
    const Range range{reinterpret_cast<uint64_t>(memory), bytes};
    if (result == CUDA_SUCCESS && runtime != nullptr) {  // pinned, as what it allocates
      runtime->add_host_memory(range, {false, false, flags, current_context()});
    }
    const bool asked = result == CUDA_ERROR_NOT_SUPPORTED && runtime != nullptr &&
                       serve::options().registration && !port().knows(range.address) &&
                       !port().knows(range.end() - 1);
    if (asked && (flags & CU_MEMHOSTREGISTER_DEVICEMAP) != 0) {
      say_unmapped("the program registers memory to be mapped into the device");
    }
    if (!asked || (flags & ~kGranted) != 0) return result;
    const bool read_only = (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0;
    const auto access = read_only ? serve::Access::read : serve::Access::write;
    if (!serve::is_usable(memory, bytes, access)) return CUDA_ERROR_INVALID_VALUE;
    return runtime->host_memory().add_apart(range, {false, true, flags, current_context()})
               ? CUDA_SUCCESS
               : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  });
}

// What we know of host memory that the driver does not know.
std::optional<serve::RangeMap<serve::HostBlock>::Entry> known_to_us(const void* memory) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr) return std::nullopt;
  const auto block = runtime->host_memory().find(reinterpret_cast<uint64_t>(memory));
  return block && (block->what.ours || block->what.registered) ? block : std::nullopt;
}

CUresult unregister(void* memory, CUresult (*next)(void*)) {
  serve::Runtime* const runtime = serve::Runtime::get();
  if (runtime == nullptr) return next(memory);
  const auto block = runtime->host_memory().find(reinterpret_cast<uint64_t>(memory));
  const bool whole = block && block->range.address == reinterpret_cast<uint64_t>(memory);
  if (!whole || block->what.ours) return next(memory);
  return runtime->free_host_memory(
      block->range.address, [&] { return block->what.registered ? CUDA_SUCCESS : next(memory); });
}

template <typename Value>
CUresult give(void* data, Value value) {
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult host_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr address,
                        const serve::RangeMap<serve::HostBlock>::Entry& block) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return give(data, block.what.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give<unsigned>(data, CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:  // unified addressing: the same number
      return give<uint64_t>(data, address);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return give<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return give<uint64_t>(data, block.range.address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return give<size_t>(data, block.range.bytes);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return give(data, 0);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

SEALANE_SINGLE(cuMemHostRegister, (void* memory, size_t bytes, unsigned flags),
               register_memory(memory, bytes, flags, [&] { return next(memory, bytes, flags); }))
SEALANE_SINGLE(cuMemHostRegister_v2, (void* memory, size_t bytes, unsigned flags),
               register_memory(memory, bytes, flags, [&] { return next(memory, bytes, flags); }))
SEALANE_SINGLE(cuMemHostUnregister, (void* memory), plain([&] { return unregister(memory, next); }))

// --- questions about memory

#define ASKED(symbol, shape, parameters, arguments, memory, answer)                       \
  SEALANE_SINGLE(symbol, parameters, shape([&] {                                          \
                   const auto block = known_to_us(reinterpret_cast<const void*>(memory)); \
                   return block ? answer : next arguments;                                \
                 }))
// A device address for it is what we cannot give.
ASKED(cuMemHostGetDevicePointer_v2, plain, (CUdeviceptr * address, void* memory, unsigned flags),
      (address, memory, flags), memory,
      (say_unmapped("the program asks for the device's address of its memory"),
       CUDA_ERROR_NOT_SUPPORTED))
ASKED(cuMemHostGetFlags, plain, (unsigned* flags, void* memory), (flags, memory), memory,
      flags == nullptr ? CUDA_ERROR_INVALID_VALUE : give(flags, block->what.flags))
ASKED(cuPointerGetAttribute, in_any_case,
      (void* data, CUpointer_attribute attribute, CUdeviceptr address), (data, attribute, address),
      address,
      data == nullptr ? CUDA_ERROR_INVALID_VALUE : host_attribute(data, attribute, address, *block))
ASKED(cuMemGetAddressRange_v2, plain, (CUdeviceptr * base, size_t* bytes, CUdeviceptr address),
      (base, bytes, address), address,
      (base != nullptr ? give(base, block->range.address) : CUDA_SUCCESS,
       bytes != nullptr ? give(bytes, block->range.bytes) : CUDA_SUCCESS))

SEALANE_SINGLE(cuPointerGetAttributes,
               (unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr address),
               in_any_case([&] {
                 const CUresult result = next(count, attributes, data, address);  // zeros: unknown
                 const auto block = known_to_us(reinterpret_cast<const void*>(address));
                 for (unsigned i = 0; block && result == CUDA_SUCCESS && i < count; ++i) {
                   host_attribute(data[i], attributes[i], address, *block);
                 }
                 return result;
               }))
