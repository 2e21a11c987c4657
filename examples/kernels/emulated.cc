// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels for the emulated GPU: the same items, run one after the other on a thread of the
// emulated device. Also a kernel library by itself:
// SEALANE_EMU_KERNELS=libsealane-example-kernels.so serves programs built by nvcc.

#include "kernels/emulated.h"

#include <dlfcn.h>
#include <sealane_emu.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/kernels.h"

namespace examples {

namespace {

// Replaces a kernel's device addresses by memory this thread can use.
class Translator {
 public:
  explicit Translator(const sealane_emu_launch* launch) : launch_(launch) {}

  template <typename T>
  void operator()(T*& pointer, size_t elements) {
    (*this)(pointer, elements, elements);
  }

  template <typename T>
  void operator()(T*& pointer, size_t elements, size_t touched) {
    const auto address = reinterpret_cast<uint64_t>(pointer);
    pointer = static_cast<T*>(launch_->memory(launch_, address, elements * sizeof(T)));
    ok_ = ok_ && pointer != nullptr;
    bytes_ += static_cast<double>(touched * sizeof(T));
  }

  bool ok() const { return ok_; }
  double bytes() const { return bytes_; }

 private:
  const sealane_emu_launch* launch_;
  bool ok_ = true;
  double bytes_ = 0;
};

size_t threads_of(const sealane_emu_launch& launch) {
  size_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) threads *= size_t{launch.grid[axis]} * launch.block[axis];
  return threads;
}

template <typename Kernel>
void run(const sealane_emu_launch* launch) {
  static_assert(std::is_trivially_copyable_v<Kernel>);
  Kernel kernel;
  std::memcpy(&kernel, launch->arguments[0], sizeof kernel);
  Translator translate(launch);
  kernel.memory(translate);
  if (!translate.ok()) return;  // the context has failed already
  launch->charge(launch, kernel.operations(), translate.bytes());
  const size_t items = std::min(kernel.items(), threads_of(*launch));
  for (size_t i = 0; i < items; ++i) kernel.item(i);
}

template <typename Kernel>
void add_kernel(const char* name, sealane_emu_register_fn add) {
  static constexpr size_t kArgumentBytes[] = {sizeof(Kernel)};
  const sealane_emu_kernel description{sizeof description, name, run<Kernel>, kArgumentBytes, 1};
  add(&description);
}

}  // namespace

}  // namespace examples

extern "C" __attribute__((visibility("default"))) void sealane_emu_kernels(
    sealane_emu_register_fn add) {
#define SEALANE_ADD(type, name) examples::add_kernel<examples::type>(#name, add);
  SEALANE_EXAMPLE_KERNELS(SEALANE_ADD)
#undef SEALANE_ADD
}

namespace examples {

void register_emulated_kernels() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return;
  if (void* const add = dlsym(driver, "sealane_emu_register")) {
    sealane_emu_kernels(reinterpret_cast<sealane_emu_register_fn>(add));
  }
  dlclose(driver);
}

}  // namespace examples
