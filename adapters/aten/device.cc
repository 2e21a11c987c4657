// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One kernel, known to the CUDA runtime as nvcc's start-up code would make it known, and to the
// driver as a host function. Its only parameter is the number of a piece of work.

#include "device.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>

namespace sealane::aten {
namespace {

constexpr const char* kKernel = "sealane_aten_operator";
constexpr const char* kImage =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry sealane_aten_operator(.param .u64 work) { trap; }\n";

struct Order {
  std::string name;
  Work work;
  bool captured = false;
};

struct Orders {
  std::mutex mutex;
  uint64_t next = 0;
  std::map<uint64_t, std::shared_ptr<Order>> waiting;
};

Orders& orders() {
  static Orders& made = *new Orders;  // device threads outlive main()
  return made;
}

std::shared_ptr<Order> take(uint64_t number) {
  const std::lock_guard lock(orders().mutex);
  const auto found = orders().waiting.find(number);
  if (found == orders().waiting.end()) return nullptr;
  const std::shared_ptr<Order> order = found->second;
  if (!order->captured) orders().waiting.erase(found);
  return order;
}

void run(const sealane_emu_launch* launch) {
  const auto order = take(*static_cast<const uint64_t*>(launch->arguments[0]));
  if (!order) return;
  try {
    order->work(Device(*launch));
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "sealane emulated GPU: %s: %s\n", order->name.c_str(),
                 error.what_without_backtrace());
    launch->memory(launch, 0, 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sealane emulated GPU: %s: %s\n", order->name.c_str(), error.what());
    launch->memory(launch, 0, 1);
  }
}

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// Of the runtime this PyTorch is linked to: another one would not know its current device.
struct Runtime {
  int (*launch_kernel)(const void*, Dim3, Dim3, void**, size_t, void*) = nullptr;
  int (*is_capturing)(void*, int*) = nullptr;
  const char* (*error_string)(int) = nullptr;

  static const Runtime& get() {
    static const Runtime made = find();
    return made;
  }
  static Runtime find() {
    Runtime out;
    void* library = dlopen(SEALANE_CUDART, RTLD_NOW | RTLD_NOLOAD);
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr || driver == nullptr) return out;
    const auto add =
        reinterpret_cast<sealane_emu_register_fn>(dlsym(driver, "sealane_emu_register"));
    using RegisterBinary = void** (*)(const void*);
    using RegisterFunction = void (*)(void**, const void*, const char*, const char*, int, void*,
                                      void*, void*, void*, int*);
    const auto binary = reinterpret_cast<RegisterBinary>(dlsym(library, "__cudaRegisterFatBinary"));
    const auto function =
        reinterpret_cast<RegisterFunction>(dlsym(library, "__cudaRegisterFunction"));
    if (add == nullptr || binary == nullptr || function == nullptr) return out;
    static const size_t bytes[] = {sizeof(uint64_t)};
    const sealane_emu_kernel kernel = {sizeof kernel, kKernel, run, bytes, 1};
    if (add(&kernel) != 0) return out;
    function(binary(kImage), kKernel, kKernel, kKernel, -1, nullptr, nullptr, nullptr, nullptr,
             nullptr);
    const auto find_in = [&](const char* name, auto& into) {
      into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(dlsym(library, name));
    };
    find_in("cudaStreamIsCapturing", out.is_capturing);
    find_in("cudaGetErrorString", out.error_string);
    find_in("cudaLaunchKernel", out.launch_kernel);
    return out;
  }
};

}  // namespace

void* Device::memory(uint64_t address, size_t bytes) const {
  void* found = launch_.memory(&launch_, address, bytes);
  TORCH_CHECK(found != nullptr, "no ", bytes, " bytes of this device at ", address);
  return found;
}

bool device_is_emulated() { return Runtime::get().launch_kernel != nullptr; }

void launch(const c10::Stream& stream, const char* name, Work work) {
  const Runtime& runtime = Runtime::get();
  void* handle = stream.native_handle();
  int capturing = 0;
  runtime.is_capturing(handle, &capturing);
  auto order = std::make_shared<Order>(Order{name, std::move(work), capturing != 0});
  uint64_t number = 0;
  {
    const std::lock_guard lock(orders().mutex);
    number = ++orders().next;
    orders().waiting.emplace(number, std::move(order));
  }
  void* arguments[] = {&number};
  const int result = runtime.launch_kernel(kKernel, {}, {}, arguments, 0, handle);
  if (result == 0) return;
  const std::lock_guard lock(orders().mutex);
  orders().waiting.erase(number);
  TORCH_CHECK(false, "CUDA error: ", runtime.error_string(result), " (launching ", name, ")");
}

}  // namespace sealane::aten
