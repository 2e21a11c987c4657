// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/gpu_memory.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <memory>

#include "base/text.h"

namespace sealane {
namespace {

// Of cuPointerGetAttribute.
constexpr int kContextAttribute = 1;
constexpr int kMemoryTypeAttribute = 2;
constexpr int kIsManagedAttribute = 8;
constexpr unsigned kDeviceMemory = 2;

template <typename Function>
bool resolve(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

// How many libraries this process has ever loaded.
unsigned long long libraries_loaded() {
  unsigned long long count = 0;
  const auto first = [](dl_phdr_info* info, size_t, void* out) {
    *static_cast<unsigned long long*>(out) = info->dlpi_adds;
    return 1;
  };
  dl_iterate_phdr(first, &count);
  return count;
}

}  // namespace

const GpuMemory* GpuMemory::loaded() {
  // Found once, it stays: drivers are not unloaded. Two threads may both look; one result is kept.
  static std::atomic<const GpuMemory*> found{nullptr};
  if (const GpuMemory* known = found.load(std::memory_order_acquire)) return known;
  // Looking in vain searches directories, which is slow: only when there is something new.
  static std::atomic<unsigned long long> looked_at{0};
  const unsigned long long libraries = libraries_loaded();
  if (looked_at.load(std::memory_order_relaxed) == libraries) return nullptr;
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) {
    looked_at.store(libraries, std::memory_order_relaxed);
    return nullptr;
  }
  auto made = std::make_unique<GpuMemory>();
  const bool complete = resolve(library, "cuPointerGetAttribute", made->pointer_attribute_) &&
                        resolve(library, "cuCtxPushCurrent_v2", made->push_context_) &&
                        resolve(library, "cuCtxPopCurrent_v2", made->pop_context_) &&
                        resolve(library, "cuMemcpyDtoH_v2", made->device_to_host_) &&
                        resolve(library, "cuMemcpyHtoD_v2", made->host_to_device_);
  if (!complete) {
    dlclose(library);
    return nullptr;
  }
  const GpuMemory* expected = nullptr;
  if (found.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) {
    return made.release();  // leaked on purpose: it outlives every exit handler
  }
  dlclose(library);
  return expected;
}

std::optional<GpuMemory::Context> GpuMemory::owner(const void* memory) const {
  const auto address = reinterpret_cast<DevicePointer>(memory);
  unsigned type = 0;
  // Memory the driver has never heard of is the host's; so is everything before cuInit.
  if (pointer_attribute_(&type, kMemoryTypeAttribute, address) != 0) return std::nullopt;
  if (type != kDeviceMemory) return std::nullopt;
  unsigned managed = 0;  // the driver writes one to four bytes, by version
  if (pointer_attribute_(&managed, kIsManagedAttribute, address) == 0 && managed != 0) {
    return std::nullopt;
  }
  Context context = nullptr;
  if (pointer_attribute_(&context, kContextAttribute, address) != 0) context = nullptr;
  return context;
}

template <typename Copy>
Status GpuMemory::copy(Context context, const char* what, Copy copy) const {
  if (context != nullptr) {
    if (const int error = push_context_(context); error != 0) {
      return io_error(concat("cannot enter the context of GPU memory: CUDA error ", error));
    }
  }
  const int error = copy();
  Context left = nullptr;
  if (context != nullptr) pop_context_(&left);
  if (error == 0) return {};
  return io_error(concat("cannot copy ", what, " GPU memory: CUDA error ", error));
}

Status GpuMemory::fetch(Context context, const void* device, MutableBytes to) const {
  return copy(context, "from", [&] {
    return device_to_host_(to.data(), reinterpret_cast<DevicePointer>(device), to.size());
  });
}

Status GpuMemory::store(Context context, void* device, Bytes from) const {
  return copy(context, "to", [&] {
    return host_to_device_(reinterpret_cast<DevicePointer>(device), from.data(), from.size());
  });
}

}  // namespace sealane
