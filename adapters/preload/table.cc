// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Declares every hook without its parameters: only their addresses matter here.

#include "table.h"

#include <dlfcn.h>

#include <cstring>

#include "loader.h"

#define SEALANE_HOOK(symbol, name, version, per_thread) SEALANE_HOOKED symbol();
#include "hooks.def"
#undef SEALANE_HOOK

namespace sealane::preload {
namespace {

constexpr int kNewestVersion = 13000;  // CUDA versions whose variants of calls we know

#define SEALANE_HOOK(symbol, name, version, per_thread) \
  {#symbol, #name, version, per_thread, reinterpret_cast<void*>(&::symbol)},
const Hook kTable[] = {
#include "hooks.def"
};
#undef SEALANE_HOOK

}  // namespace

std::atomic<void*> real_functions[kHooks];

const Hook& hook(Slot slot) { return kTable[static_cast<size_t>(slot)]; }

Slot find_hook(const char* symbol) {
  for (size_t i = 0; i < kHooks; ++i) {
    if (std::strcmp(kTable[i].symbol, symbol) == 0) return static_cast<Slot>(i);
  }
  return Slot::count;
}

Slot find_hook(const char* name, int version, bool per_thread) {
  if (version > kNewestVersion) version = kNewestVersion;
  size_t best = kHooks;
  for (size_t i = 0; i < kHooks; ++i) {
    const Hook& one = kTable[i];
    if (one.per_thread != per_thread || one.version > version) continue;
    if (std::strcmp(one.name, name) != 0) continue;
    if (best == kHooks || one.version > kTable[best].version) best = i;
  }
  return static_cast<Slot>(best);
}

void* find_in_driver(const char* symbol) {
  void* driver = driver_library();
  return driver != nullptr ? real_dlsym(driver, symbol) : nullptr;
}

void* find_real(Slot slot) {
  void* found = find_in_driver(hook(slot).symbol);
  if (found == hook(slot).function) return nullptr;
  remember_real(slot, found);
  return real_functions[static_cast<size_t>(slot)].load();
}

void remember_real(Slot slot, void* function) {
  void* none = nullptr;
  real_functions[static_cast<size_t>(slot)].compare_exchange_strong(none, function);
}

}  // namespace sealane::preload
