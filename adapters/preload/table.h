// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of hooks (hooks.def) and of the driver's functions behind them. A slot's real function
// is found when it is first needed and never changes. Thread-safe; looking one up is one load.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuda_abi/cuda_types.h"

#define SEALANE_HOOKED extern "C" __attribute__((visibility("default"))) CUresult

namespace sealane::preload {

#define SEALANE_HOOK(symbol, name, version, per_thread) symbol,
enum class Slot : uint16_t {
#include "hooks.def"
  count
};
#undef SEALANE_HOOK

struct Hook {
  const char* symbol;
  const char* name;  // as cuGetProcAddress knows it
  int version;
  bool per_thread;
  void* function;  // ours
};

const Hook& hook(Slot slot);
constexpr size_t kHooks = static_cast<size_t>(Slot::count);

// By exported symbol; Slot::count if it is none of ours.
Slot find_hook(const char* symbol);
// By what cuGetProcAddress was asked for. Slot::count: none of ours, or newer than what we know.
Slot find_hook(const char* name, int version, bool per_thread);

extern std::atomic<void*> real_functions[kHooks];
void* find_real(Slot slot);  // nullptr: the driver has no such function, or is not loaded
void remember_real(Slot slot, void* function);

// A function of the driver that we do not hook.
void* find_in_driver(const char* symbol);
template <typename Function>
void find_in_driver(Function*& slot, const char* symbol) {
  slot = reinterpret_cast<Function*>(find_in_driver(symbol));
}

template <typename Function>
Function* real(Slot slot, Function*) {
  void* found = real_functions[static_cast<size_t>(slot)].load(std::memory_order_acquire);
  if (__builtin_expect(found == nullptr, false)) found = find_real(slot);
  return reinterpret_cast<Function*>(found);
}

// The real function behind a hook, typed as the hook is.
#define SEALANE_REAL(symbol) ::sealane::preload::real(::sealane::preload::Slot::symbol, &::symbol)

}  // namespace sealane::preload
