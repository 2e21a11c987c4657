// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/device/kernels.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "base/log.h"

namespace sealane::emu {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Kernel>, std::less<>> kernels;
  std::map<std::string, Symbol, std::less<>> symbols;
};

Registry& registry() {
  static Registry& made = *new Registry;  // used by threads that outlive main()
  return made;
}

// Parameters start at multiples of their size, at most 16, as in the launch buffer of a GPU.
size_t aligned(size_t offset, size_t bytes) {
  size_t alignment = 1;
  while (alignment < 16 && alignment * 2 <= bytes) alignment *= 2;
  return (offset + alignment - 1) & ~(alignment - 1);
}

size_t packed_bytes(const Kernel& kernel) {
  size_t offset = 0;
  for (const size_t bytes : kernel.argument_bytes) offset = aligned(offset, bytes) + bytes;
  return offset;
}

}  // namespace

bool register_kernel(const sealane_emu_kernel& kernel) {
  const bool sane = kernel.size >= sizeof kernel && kernel.name != nullptr &&
                    (kernel.argument_count == 0 || kernel.argument_bytes != nullptr);
  if (!sane) return false;
  auto made = std::make_shared<Kernel>();
  made->name = kernel.name;
  made->run = kernel.run;
  made->known = true;
  if (kernel.argument_count > 0) {
    made->argument_bytes.assign(kernel.argument_bytes,
                                kernel.argument_bytes + kernel.argument_count);
  }
  const std::lock_guard lock(registry().mutex);
  registry().kernels[made->name] = std::move(made);
  return true;
}

bool register_symbol(const char* name, uint64_t address, size_t bytes) {
  if (name == nullptr) return false;
  const std::lock_guard lock(registry().mutex);
  registry().symbols[name] = {address, bytes};
  return true;
}

bool load_kernel_libraries(const std::string& colon_separated) {
  size_t start = 0;
  while (start < colon_separated.size()) {
    const size_t end = std::min(colon_separated.find(':', start), colon_separated.size());
    const std::string path = colon_separated.substr(start, end - start);
    start = end + 1;
    if (path.empty()) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* entry = library != nullptr ? dlsym(library, "sealane_emu_kernels") : nullptr;
    if (entry == nullptr) {
      std::fprintf(
          stderr, "sealane emulated GPU: SEALANE_EMU_KERNELS: %s\n",
          library == nullptr ? dlerror() : (path + " has no sealane_emu_kernels()").c_str());
      return false;
    }
    reinterpret_cast<void (*)(sealane_emu_register_fn)>(entry)(
        [](const sealane_emu_kernel* kernel) {
          return kernel != nullptr && register_kernel(*kernel) ? 0 : 1;
        });
  }
  return true;
}

std::shared_ptr<const Kernel> find_kernel(std::string_view name) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().kernels.find(name);
  if (found != registry().kernels.end()) return found->second;
  SEALANE_LOG(warn, "emulated GPU: no kernel '%.*s': it takes its time and does nothing",
              static_cast<int>(name.size()), name.data());
  auto unknown = std::make_shared<Kernel>();
  unknown->name = name;
  registry().kernels[unknown->name] = unknown;
  return unknown;
}

std::shared_ptr<const Kernel> find_registered(std::string_view name) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().kernels.find(name);
  return found != registry().kernels.end() && found->second->known ? found->second : nullptr;
}

Symbol find_symbol(std::string_view name) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().symbols.find(name);
  return found == registry().symbols.end() ? Symbol{} : found->second;
}

size_t parameter_offset(const Kernel& kernel, size_t index) {
  size_t offset = 0;
  for (size_t i = 0; i < index; ++i) {
    offset = aligned(offset, kernel.argument_bytes[i]) + kernel.argument_bytes[i];
  }
  return aligned(offset, kernel.argument_bytes[index]);
}

Arguments Arguments::copy(const Kernel& kernel, void* const* pointers) {
  Arguments out;
  if (kernel.argument_bytes.empty() || pointers == nullptr) return out;
  out.storage_.reset(new uint8_t[packed_bytes(kernel)]);
  size_t offset = 0;
  for (size_t i = 0; i < kernel.argument_bytes.size(); ++i) {
    offset = aligned(offset, kernel.argument_bytes[i]);
    std::memcpy(out.storage_.get() + offset, pointers[i], kernel.argument_bytes[i]);
    out.pointers_.push_back(out.storage_.get() + offset);
    offset += kernel.argument_bytes[i];
  }
  return out;
}

Arguments Arguments::copy_packed(const Kernel& kernel, const void* buffer, size_t bytes) {
  Arguments out;
  if (kernel.argument_bytes.empty() || packed_bytes(kernel) > bytes) return out;
  out.storage_.reset(new uint8_t[bytes]);
  std::memcpy(out.storage_.get(), buffer, bytes);
  size_t offset = 0;
  for (const size_t size : kernel.argument_bytes) {
    offset = aligned(offset, size);
    out.pointers_.push_back(out.storage_.get() + offset);
    offset += size;
  }
  return out;
}

}  // namespace sealane::emu
