// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "libcrypto.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <mutex>
#include <new>

#include "loader.h"

namespace sealane::preload {
namespace {

// Whoever calls us has a libcrypto, unless it was taken away meanwhile.
template <typename Function>
struct Refusing;
template <typename Result, typename... Arguments>
struct Refusing<Result(Arguments...)> {
  static Result call(Arguments...) { return Result(); }
};

// By symbol and version, in RTLD_NEXT's scope or a library's.
bool fill(Libcrypto& table, void* scope) {
  bool complete = true;
  const auto find = [&](auto*& slot, const char* symbol, const char* version, bool needed) {
    void* found = dlvsym(scope, symbol, version);
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(found);
    complete = complete && (found != nullptr || !needed);
    return complete;
  };
#define SEALANE_FIND(member, type, symbol, version) &&find(table.member, #symbol, version, true)
#define SEALANE_TRY(member, type, symbol, version) &&find(table.member, #symbol, version, false)
  return true SEALANE_HOOKED_LIBCRYPTO(SEALANE_FIND) SEALANE_ASKED_LIBCRYPTO(SEALANE_FIND)
      SEALANE_HOOKED_NEWER_LIBCRYPTO(SEALANE_TRY);
#undef SEALANE_FIND
#undef SEALANE_TRY
}

const Libcrypto& none() {
  static const Libcrypto table = {
#define SEALANE_REFUSE(member, type, symbol, version) .member = &Refusing<type>::call,
      SEALANE_HOOKED_LIBCRYPTO(SEALANE_REFUSE) SEALANE_ASKED_LIBCRYPTO(SEALANE_REFUSE)
#undef SEALANE_REFUSE
  };
  return table;
}

// Code that a libcrypto was found for. Never taken back: both objects are kept loaded.
struct Known {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  const Libcrypto* table = nullptr;
};

// Objects that use a libcrypto are few; those beyond are looked up every time.
class Libraries {
 public:
  const Libcrypto* find(const void* caller) const {
    const Libcrypto* own = find_own(caller);
    return own != nullptr ? own : everybodys_.load(std::memory_order_acquire);
  }
  const Libcrypto* find_own(const void* caller) const {
    const auto at = reinterpret_cast<uintptr_t>(caller);
    for (size_t i = 0; i < count_.load(std::memory_order_acquire); ++i) {
      if (at >= known_[i].begin && at < known_[i].end) return known_[i].table;
    }
    return nullptr;
  }
  // What was known first stays.
  const Libcrypto* add(const void* caller, const Known& made) {
    const std::lock_guard lock(mutex_);
    if (const Libcrypto* before = find_own(caller)) return before;
    const size_t count = count_.load();
    if (count < kMax) {
      known_[count] = made;
      count_.store(count + 1, std::memory_order_release);
    }
    return made.table;
  }
  const Libcrypto* add_for_everybody(const Libcrypto* table) {
    const Libcrypto* before = nullptr;
    return everybodys_.compare_exchange_strong(before, table) ? table : before;
  }

 private:
  static constexpr size_t kMax = 256;
  std::mutex mutex_;
  Known known_[kMax];
  std::atomic<size_t> count_{0};
  std::atomic<const Libcrypto*> everybodys_{nullptr};
};

Libraries& libraries() {
  static Libraries all;  // needs no destructor
  return all;
}
static_assert(std::is_trivially_destructible_v<Libraries>);

// For good. Nothing is allocated where the program's call may come from anywhere; who has more
// libcryptos than this has patience too.
const Libcrypto* keep(const Libcrypto& table) {
  static Libcrypto kept[16];
  static std::atomic<size_t> count{0};
  const size_t at = count.fetch_add(1);
  if (at >= std::size(kept)) return new (std::nothrow) Libcrypto(table);
  kept[at] = table;
  return &kept[at];
}

struct Object {
  Known code;
  const char* path = "";  // empty: the program itself, or none
};

Object object_of(const void* code) {
  struct Search {
    uintptr_t at;
    Object found;
  } search{reinterpret_cast<uintptr_t>(code), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
          const uintptr_t end = begin + header.p_memsz;
          if (header.p_type != PT_LOAD || wanted.at < begin || wanted.at >= end) continue;
          wanted.found = {{begin, end, nullptr}, info->dlpi_name};
          return 1;
        }
        return 0;
      },
      &search);
  return search.found;
}

// The code that asks is running, so it is not unloaded meanwhile.
void* keep_loaded(const char* path) {
  return *path == '\0' ? nullptr : real_dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

const Libcrypto* look_up(const void* caller) {
  Libcrypto table;
  // What everybody sees goes first, as the dynamic linker has it.
  if (fill(table, RTLD_NEXT)) {
    keep_loaded(object_of(reinterpret_cast<const void*>(table.cipher_of)).path);
    return libraries().add_for_everybody(keep(table));
  }
  Object object = object_of(caller);
  void* scope = keep_loaded(object.path);
  if (scope == nullptr || !fill(table, scope)) {
    scope = real_dlopen("libcrypto.so.3", RTLD_LAZY | RTLD_LOCAL);
    if (scope == nullptr || !fill(table, scope)) return nullptr;
  }
  object.code.table = keep(table);
  return libraries().add(caller, object.code);
}

}  // namespace

const Libcrypto& libcrypto_of(const void* caller) {
  const Libcrypto* found = libraries().find(caller);
  if (found == nullptr) found = look_up(caller);
  return found != nullptr ? *found : none();
}

bool takes_libcrypto(const void* caller, const char* name, const char* version, void* function) {
  void* const library = keep_loaded(object_of(function).path);
  if (library == nullptr || dlvsym(library, name, version) != function) return false;
  Libcrypto table;
  if (!fill(table, library)) return false;
  const Libcrypto* known = libraries().find_own(caller);
  if (known == nullptr) {
    Object object = object_of(caller);
    keep_loaded(object.path);
    object.code.table = keep(table);
    known = libraries().add(caller, object.code);
  }
  // A second libcrypto of the same object is left alone.
  return known != nullptr && known->encrypt_init_ex == table.encrypt_init_ex;
}

}  // namespace sealane::preload
