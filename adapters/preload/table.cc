// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Declares what we export without its parameters: only the addresses matter here.

#include "table.h"

#include <dlfcn.h>

#include <cstring>

#include "loader.h"
#include "start.h"

#define SEALANE_HOOK(symbol, name, version, per_thread) \
  extern "C" __attribute__((visibility("default"))) CUresult symbol();
#include "hooks.def"
#undef SEALANE_HOOK

extern "C" __attribute__((visibility("hidden"))) std::atomic<void*>
    sealane_entries[static_cast<size_t>(sealane::preload::Slot::count)];
static_assert(std::atomic<void*>::is_always_lock_free && sizeof(std::atomic<void*>) == 8);

namespace sealane::preload {
namespace {

std::atomic<bool> aside{false};
std::atomic<bool> all_found{false};

constexpr int kNewestVersion = 13000;  // CUDA versions whose variants of calls we know

#define SEALANE_HOOK(symbol, name, version, per_thread) \
  {#symbol, #name, version, per_thread, reinterpret_cast<void*>(&::symbol)},
const Hook kTable[] = {
#include "hooks.def"
};
#undef SEALANE_HOOK

// What is asked of the slot is asked of the driver, if it has the function.
void let_through(Slot slot) {
  void* const own = real_functions[static_cast<size_t>(slot)].load();
  if (own != nullptr) sealane_entries[static_cast<size_t>(slot)].store(own);
}

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
  if (all_found.load(std::memory_order_acquire)) {
    return real_functions[static_cast<size_t>(slot)].load();
  }
  void* found = find_in_driver(hook(slot).symbol);
  if (found == hook(slot).function) return nullptr;
  remember_real(slot, found);
  return real_functions[static_cast<size_t>(slot)].load();
}

void remember_real(Slot slot, void* function) {
  void* none = nullptr;
  real_functions[static_cast<size_t>(slot)].compare_exchange_strong(none, function);
  if (stands_aside()) let_through(slot);
}

void find_all_real() {
  if (all_found.load() || driver_library() == nullptr) return;
  for (size_t i = 0; i < kHooks; ++i) find_real(static_cast<Slot>(i));
  all_found.store(true, std::memory_order_release);
}

void stand_aside() {
  aside.store(true);
  for (size_t i = 0; i < kHooks; ++i) {
    const auto slot = static_cast<Slot>(i);
    if (find_real(slot) != nullptr) let_through(slot);
  }
}

bool stands_aside() { return aside.load(std::memory_order_acquire) || disabled(); }

}  // namespace sealane::preload
