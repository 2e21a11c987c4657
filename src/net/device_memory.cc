// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/device_memory.h"

#include <dlfcn.h>

#include <mutex>
#include <optional>

#include "base/text.h"

namespace sealane::net {

struct DeviceMemory::Driver {
  using Pointer = unsigned long long;

  int (*attribute)(void*, int, Pointer);
  int (*push)(Context);
  int (*pop)(Context*);
  int (*create_stream)(Stream*, unsigned);
  int (*destroy_stream)(Stream);
  int (*wait_stream)(Stream);
  int (*to_host)(void*, Pointer, size_t, Stream);
  int (*to_device)(Pointer, const void*, size_t, Stream);

  static Pointer pointer(const void* memory) { return reinterpret_cast<Pointer>(memory); }
};

namespace {

constexpr int kContextAttribute = 1;  // of cuPointerGetAttribute
constexpr int kTypeAttribute = 2;
constexpr unsigned kTypeDevice = 2;
constexpr unsigned kNonBlocking = 1;  // of cuStreamCreate: does not wait for the default stream

}  // namespace

const DeviceMemory::Driver* DeviceMemory::loaded() {
  static std::mutex mutex;
  static std::optional<Driver> found;  // drivers are not unloaded
  const std::lock_guard lock(mutex);
  if (found) return &*found;
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  bool all = true;
  const auto take = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    all = all && function != nullptr;
  };
  Driver driver{};
  take(driver.attribute, "cuPointerGetAttribute");
  take(driver.push, "cuCtxPushCurrent_v2");
  take(driver.pop, "cuCtxPopCurrent_v2");
  take(driver.create_stream, "cuStreamCreate");
  take(driver.destroy_stream, "cuStreamDestroy_v2");
  take(driver.wait_stream, "cuStreamSynchronize");
  take(driver.to_host, "cuMemcpyDtoHAsync_v2");
  take(driver.to_device, "cuMemcpyHtoDAsync_v2");
  if (all) found = driver;
  return all ? &*found : nullptr;
}

template <typename Call>
Status DeviceMemory::in_context(const char* what, Call call) const {
  if (const int error = driver_.push(context_); error != 0) {
    return io_error(concat("cannot enter the context of GPU memory: CUDA error ", error));
  }
  const int error = call();
  Context left = nullptr;
  driver_.pop(&left);
  if (error == 0) return {};
  return io_error(concat("cannot ", what, " GPU memory: CUDA error ", error));
}

Result<std::shared_ptr<DeviceMemory>> DeviceMemory::of(const void* memory) {
  const Driver* const driver = loaded();
  if (driver == nullptr) return usage_error("GPU memory, and this process has loaded no driver");
  unsigned type = 0;
  Context context = nullptr;
  const auto address = Driver::pointer(memory);
  if (driver->attribute(&type, kTypeAttribute, address) != 0 || type != kTypeDevice ||
      driver->attribute(&context, kContextAttribute, address) != 0 || context == nullptr) {
    return usage_error("memory that was registered as a GPU's is not");
  }
  std::shared_ptr<DeviceMemory> made(new DeviceMemory(*driver, context));
  const Status status = made->in_context(
      "make a stream for", [&] { return driver->create_stream(&made->stream_, kNonBlocking); });
  if (!status) return status.error();
  return made;
}

DeviceMemory::~DeviceMemory() {
  if (stream_ == nullptr) return;
  static_cast<void>(in_context("leave", [&] { return driver_.destroy_stream(stream_); }));
}

Status DeviceMemory::fetch(Bytes device, MutableBytes to) const {
  if (to.empty()) return {};
  return in_context("read", [&] {
    const int error =
        driver_.to_host(to.data(), Driver::pointer(device.data()), to.size(), stream_);
    return error != 0 ? error : driver_.wait_stream(stream_);
  });
}

Status DeviceMemory::store(MutableBytes device, Bytes from) const {
  if (from.empty()) return {};
  return in_context("write", [&] {
    const int error =
        driver_.to_device(Driver::pointer(device.data()), from.data(), from.size(), stream_);
    return error != 0 ? error : driver_.wait_stream(stream_);
  });
}

}  // namespace sealane::net
