// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The ways in that go through the dynamic linker: dlsym hands out hooks for the functions we stand
// in front of, and what dlopen brought of the driver is bound before it returns.

#include "loader.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

#include "binding.h"
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

// Where the dynamic linker looks for a file that this object asks for by name. Not on the stack: a
// thread that calls dlopen may have no more than dlopen needs.
class Places {
 public:
  explicit Places(const void* code) {
    Dl_info info{};
    link_map* map = nullptr;
    if (dladdr1(code, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return;
    Dl_serinfo size{};
    if (dlinfo(map, RTLD_DI_SERINFOSIZE, &size) != 0) return;
    list_.reset(static_cast<Dl_serinfo*>(std::malloc(size.dls_size)));
    if (list_ == nullptr) return;
    *list_ = size;
    if (dlinfo(map, RTLD_DI_SERINFO, list_.get()) != 0) list_.reset();
  }
  bool are(const Places& other) const {
    if (!list_ || !other.list_ || list_->dls_cnt != other.list_->dls_cnt) return false;
    for (unsigned i = 0; i < list_->dls_cnt; ++i) {
      if (std::strcmp(paths()[i].dls_name, other.paths()[i].dls_name) != 0) return false;
    }
    return true;
  }

 private:
  struct Free {
    void operator()(Dl_serinfo* list) const { std::free(list); }
  };
  const Dl_serpath* paths() const {  // behind the list's head
    return reinterpret_cast<const Dl_serpath*>(reinterpret_cast<const char*>(list_.get()) +
                                               offsetof(Dl_serinfo, dls_serpath));
  }
  std::unique_ptr<Dl_serinfo, Free> list_;  // null: not known
};

// dlopen looks at who calls it for the places of a bare name, for those of what the file needs, and
// for $ORIGIN. Else it makes no difference if we do.
bool caller_makes_no_difference(const char* file, const void* caller) {
  if (std::strchr(file, '$') != nullptr) return false;
  const Places callers(caller);
  const Places ours(reinterpret_cast<const void*>(&caller_makes_no_difference));
  return callers.are(ours);
}

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

// Asked for by RTLD_DEFAULT, or by the handle that dlopen gives for no file.
bool is_everybodys(void* handle) {
  static std::atomic<void*> program{nullptr};
  if (handle == RTLD_DEFAULT) return true;
  if (program.load() == nullptr) program.store(real_dlopen(nullptr, RTLD_LAZY | RTLD_NOLOAD));
  return handle == program.load();
}

// The dynamic linker must not be asked to open anything by code that it calls itself: an allocator
// above all, which may look for the next one behind it each time. Of that we see the names that it
// asks for, a dlopen of ours on this thread, and a list that is being changed; what another thread
// changes we wait for, as dlsym does.
__attribute__((tls_model("initial-exec"))) constinit thread_local int opening = 0;

bool is_allocators(const char* name) {
  constexpr const char* kNames[] = {"malloc",         "calloc",        "realloc",  "free",
                                    "posix_memalign", "aligned_alloc", "memalign", "reallocarray"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const char* one) { return std::strcmp(one, name) == 0; });
}

bool is_linker_within_change() {
  static std::atomic<const r_debug*> shared{nullptr};
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    const r_debug* const now = shared.load();
    if (now != nullptr &&
        __atomic_load_n(&now->r_state, __ATOMIC_ACQUIRE) == r_debug::RT_CONSISTENT)
      return false;
    shared.store(static_cast<const r_debug*>(real_dlsym(RTLD_DEFAULT, "_r_debug")));
    if (shared.load() == nullptr) return false;
  }
  return true;
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
__attribute__((visibility("hidden"))) std::atomic<void*> sealane_next_dlopen{nullptr};
static_assert(sizeof(std::atomic<void*>) == sizeof(void*));

namespace {

auto as_dlopen(void* function) { return reinterpret_cast<void* (*)(const char*, int)>(function); }

// The program's dlopen goes on to the next one behind us, which may be another preload's. (Those
// have no version as a rule.)
void find_next_dlopen() {
  if (sealane_next_dlopen != nullptr) return;
  void* const next = real_dlsym(RTLD_NEXT, "dlopen");
  sealane_next_dlopen = next != nullptr ? next : versioned("dlopen");
}

}  // namespace

// What dlsym answers in our place; nullptr: the real one answers, to its own caller, about the
// handle as we leave it.
__attribute__((visibility("hidden"))) void* sealane_answer_dlsym(void** handle, const char* name,
                                                                 const void* caller) {
  if (sealane_real_dlsym == nullptr) sealane_real_dlsym = versioned("dlsym");
  if (name == nullptr) return nullptr;
  const bool drivers = name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
  const bool libcryptos = std::strncmp(name, "EVP_", 4) == 0;
  // Before the driver starts nothing of ours is looked at for other names: an allocator asks before
  // it can allocate, and a child of a fork while others were asking.
  const bool binding = is_binding() && !stands_aside();
  if (binding && opening == 0 && !is_allocators(name) && !is_linker_within_change()) {
    bind_driver_by_the_way();
  }
  if (libcryptos && binding && *handle != RTLD_NEXT && in_driver(caller)) {
    return hook_for_libcrypto(*handle, name, caller);
  }
  if (!drivers) return nullptr;
  // Our exports are in the global scope, whether there is a driver or not.
  const bool special = *handle == RTLD_NEXT || is_everybodys(*handle);
  if (special) hide_without_driver(handle, name);
  if (stands_aside()) return is_everybodys(*handle) ? behind_hook(name) : nullptr;
  return special ? nullptr : hook_for_driver(*handle, name);
}

// Do we call dlopen for this caller? Else it jumps there, and what it brings of the driver is bound
// when somebody looks for something in it.
__attribute__((visibility("hidden"))) bool sealane_opens(const char* file, int flags,
                                                         const void* caller) {
  find_next_dlopen();
  if (!is_binding() || file == nullptr || (flags & RTLD_NOLOAD) != 0 || stands_aside())
    return false;
  return caller_makes_no_difference(file, caller);
}

__attribute__((visibility("hidden"))) void* sealane_open_and_bind(const char* file, int flags) {
  ++opening;
  void* const opened = as_dlopen(sealane_next_dlopen)(file, flags);
  --opening;
  const bool deep = (flags & RTLD_DEEPBIND) != 0;
  if (opened != nullptr) bind_driver(deep ? Scope::own_first : Scope::everybodys_first);
  return opened;
}
}

namespace sealane::preload {

void* real_dlsym(void* handle, const char* name) {
  if (sealane_real_dlsym == nullptr) sealane_real_dlsym = versioned("dlsym");
  return reinterpret_cast<void* (*)(void*, const char*)>(sealane_real_dlsym.load())(handle, name);
}

void* real_dlopen(const char* file, int flags) {
  static std::atomic<void*> linkers{nullptr};
  if (linkers == nullptr) linkers = versioned("dlopen");
  return as_dlopen(linkers)(file, flags);
}

}  // namespace sealane::preload
