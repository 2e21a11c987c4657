// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of hooks (hooks.def) and of the driver's functions behind them. A slot's real function
// is found when it is first needed, at the latest when the program calls cuInit: from then on the
// dynamic linker is not asked, which keeps others waiting while it runs a library's constructors,
// that may wait for us. It never changes. Thread-safe; looking one up is one load.
//
// What we export under a function's name is a jump through the slot's entry (entries_x86_64.S): to
// our hook, or, where there is nothing to do in this process, to the driver's own function. Then
// whoever is linked to the driver pays one jump, and whoever asks for an address gets the driver's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "cuda_abi/cuda_types.h"

// The hook of a symbol; hidden: what is exported is the jump to it.
#define SEALANE_HOOKED(symbol) \
  extern "C" __attribute__((visibility("hidden"))) CUresult hooked_##symbol

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
  void* function;  // ours, as we export it
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
void find_all_real();  // those that the driver has not are known to be missing then

// Nothing of ours has anything to do in this process, now or later. Calls that come in meanwhile
// may still go through a hook, which passes them on.
void stand_aside();
bool stands_aside();  // or is disabled()

// A function of the driver that we do not hook.
void* find_in_driver(const char* symbol);
template <typename Function>
void find_in_driver(Function*& slot, const char* symbol) {
  slot = reinterpret_cast<Function*>(find_in_driver(symbol));
}

// Functions that a table's constructor finds there, made by the first who asks. No lock is held
// while it does: who waited for it might have the dynamic linker's.
template <typename Table>
const Table& found_table() {
  static constinit std::atomic<const Table*> found{nullptr};
  const Table* known = found.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto made = std::make_unique<const Table>();
  return found.compare_exchange_strong(known, made.get()) ? *made.release() : *known;
}

template <typename Function>
Function* real(Slot slot, Function*) {
  void* found = real_functions[static_cast<size_t>(slot)].load(std::memory_order_acquire);
  if (__builtin_expect(found == nullptr, false)) found = find_real(slot);
  return reinterpret_cast<Function*>(found);
}

// The real function behind a hook, typed as the hook is.
#define SEALANE_REAL(symbol) \
  ::sealane::preload::real(::sealane::preload::Slot::symbol, &::hooked_##symbol)

}  // namespace sealane::preload
