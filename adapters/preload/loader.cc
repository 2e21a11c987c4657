// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The ways in that go through the dynamic linker: dlsym hands out hooks for the functions we stand
// in front of, and dlopen does not let the driver put its helper's libcrypto out of our reach.

#include "loader.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string_view>
#include <type_traits>

#include "evp.h"
#include "start.h"
#include "table.h"

namespace sealane::preload {
namespace {

// Where dlsym lived before glibc 2.34 and since.
void* versioned(const char* name) {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5"}) {
    if (void* found = dlvsym(RTLD_NEXT, name, version)) return found;
  }
  return nullptr;
}

struct Segment {
  uintptr_t begin;
  uintptr_t end;
};

bool names_driver(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return file.starts_with("libcuda.so") || file.starts_with("libnvidia-") ||
         file.starts_with("libsealane-emu-");
}

// Code segments of the driver's objects, read again when objects were loaded since.
class DriverCode {
 public:
  bool contains(const void* code) {
    const auto at = reinterpret_cast<uintptr_t>(code);
    const std::lock_guard lock(mutex_);
    if (holds(at)) return true;
    refresh();
    return holds(at);
  }

 private:
  bool holds(uintptr_t at) const {
    for (size_t i = 0; i < count_; ++i) {
      if (at >= segments_[i].begin && at < segments_[i].end) return true;
    }
    return false;
  }

  void refresh() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* self) {
          auto& mine = *static_cast<DriverCode*>(self);
          if (info->dlpi_adds == mine.seen_) return 1;  // nothing new
          if (!mine.reading_) mine.count_ = 0;
          mine.reading_ = true;
          mine.now_ = info->dlpi_adds;
          if (names_driver(info->dlpi_name)) mine.add(*info);
          return 0;
        },
        this);
    if (reading_) seen_ = now_;
    reading_ = false;
  }

  void add(const dl_phdr_info& info) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto& header = info.dlpi_phdr[i];
      if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
      const uintptr_t begin = info.dlpi_addr + header.p_vaddr;
      if (count_ < kMax) segments_[count_++] = {begin, begin + header.p_memsz};
    }
  }

  static constexpr size_t kMax = 64;  // a driver has a dozen objects

  std::mutex mutex_;
  Segment segments_[kMax]{};
  size_t count_ = 0;
  unsigned long long seen_ = 0;
  unsigned long long now_ = 0;
  bool reading_ = false;
};

void* hook_for_driver(void* handle, const char* name) {
  const Slot slot = find_hook(name);
  if (slot == Slot::count) return nullptr;
  void* found = real_dlsym(handle, name);
  if (found == nullptr || found == hook(slot).function) return nullptr;
  remember_real(slot, found);
  return hook(slot).function;
}

// The driver's own, where everybody would find what we export.
void* behind_hook(const char* name) {
  const Slot slot = find_hook(name);
  if (slot == Slot::count || real_dlsym(RTLD_DEFAULT, name) != hook(slot).function) return nullptr;
  return find_real(slot);
}

// Where no driver is loaded nobody has its functions: not we either.
void hide_without_driver(void** handle, const char* name) {
  const Slot slot = find_hook(name);
  if (slot == Slot::count || driver_library() != nullptr) return;
  if (real_dlsym(RTLD_DEFAULT, name) != hook(slot).function) return;  // the program's own
  if (real_dlsym(RTLD_NEXT, name) != nullptr) return;                 // somebody stands in for it
  if (void* libc = real_dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD)) *handle = libc;
}

}  // namespace

bool in_driver(const void* code) {
  static DriverCode driver;  // needs no destructor, and allocates nothing
  static_assert(std::is_trivially_destructible_v<DriverCode>);
  return driver.contains(code);
}

void* driver_library() {
  static std::atomic<void*> library{nullptr};
  void* found = library.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = real_dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (found != nullptr) library.store(found, std::memory_order_release);
  }
  return found;
}

}  // namespace sealane::preload

using namespace sealane::preload;

extern "C" {
// Read by the assembly in loader_x86_64.S, after the functions below have filled them.
__attribute__((visibility("hidden"))) std::atomic<void*> sealane_real_dlsym{nullptr};
__attribute__((visibility("hidden"))) std::atomic<void*> sealane_real_dlopen{nullptr};
static_assert(sizeof(std::atomic<void*>) == sizeof(void*));

// What dlsym answers in our place; nullptr: the real one answers, to its own caller, about the
// handle as we leave it.
__attribute__((visibility("hidden"))) void* sealane_answer_dlsym(void** handle, const char* name,
                                                                 const void* caller) {
  if (sealane_real_dlsym == nullptr) sealane_real_dlsym = versioned("dlsym");
  if (name == nullptr) return nullptr;
  const bool drivers = name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
  const bool libcryptos = std::strncmp(name, "EVP_", 4) == 0;
  // Nothing of ours is looked at for other names: an allocator asks before it can allocate.
  if (!drivers && !libcryptos) return nullptr;
  if (libcryptos) {
    const bool ours = *handle != RTLD_NEXT && !stands_aside() && in_driver(caller);
    return ours ? hook_for_libcrypto(caller, name, real_dlsym(*handle, name)) : nullptr;
  }
  // Our exports are in the global scope, whether there is a driver or not.
  const bool special = *handle == RTLD_NEXT || *handle == RTLD_DEFAULT;
  if (special) hide_without_driver(handle, name);
  if (stands_aside()) return *handle == RTLD_DEFAULT ? behind_hook(name) : nullptr;
  return special ? nullptr : hook_for_driver(*handle, name);
}

// The flags dlopen is called with. A driver that binds its helper to the helper's own libraries
// first would not reach our EVP functions.
__attribute__((visibility("hidden"))) int sealane_dlopen_flags(const char* file, int flags,
                                                               const void* caller) {
  if (sealane_real_dlopen == nullptr) sealane_real_dlopen = versioned("dlopen");
  if ((flags & RTLD_DEEPBIND) == 0 || stands_aside()) return flags;
  const bool drivers = in_driver(caller) || (file != nullptr && names_driver(file));
  return drivers ? flags & ~RTLD_DEEPBIND : flags;
}
}

namespace sealane::preload {

void* real_dlsym(void* handle, const char* name) {
  if (sealane_real_dlsym == nullptr) sealane_real_dlsym = versioned("dlsym");
  return reinterpret_cast<void* (*)(void*, const char*)>(sealane_real_dlsym.load())(handle, name);
}

void* real_dlopen(const char* file, int flags) {
  if (sealane_real_dlopen == nullptr) sealane_real_dlopen = versioned("dlopen");
  return reinterpret_cast<void* (*)(const char*, int)>(sealane_real_dlopen.load())(file, flags);
}

}  // namespace sealane::preload
