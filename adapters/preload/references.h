// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a loaded object keeps the addresses of libcrypto's functions that we stand in front of: its
// slots, from its own dynamic section. Only references with OpenSSL 3's versions count: those
// without are meant for somebody else's libcrypto (BoringSSL, AWS-LC, LibreSSL, a static copy).
//
// Knows ELF and nothing of the driver. The object must stay, and slots be written only when it is
// relocated. What cannot be read
// is no reference. Allocates nothing, asks nobody.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace sealane::preload {

struct LoadedObject {
  uintptr_t base = 0;
  uintptr_t begin = 0;  // of its memory
  uintptr_t end = 0;
  uintptr_t writable_begin = 0;
  uintptr_t writable_end = 0;
  uintptr_t read_only_begin = 0;  // of that, since its relocation: whole pages
  uintptr_t read_only_end = 0;
  const ElfW(Dyn) * dynamic = nullptr;

  bool holds(uintptr_t at) const { return at >= begin && at < end; }
};

// As dl_iterate_phdr describes it; `dynamic` is null if it has no such section.
LoadedObject describe(const dl_phdr_info& info);

enum class SlotKind : uint8_t {
  call,     // the dynamic linker may leave it open until the first call
  address,  // nobody but the dynamic linker writes it
  data      // the object's own, who may have written something else since
};

struct Reference {
  void** at;
  size_t hook;  // in evp_hooks()
  SlotKind kind;
};

// Has the dynamic linker done with it? It has not while it looks for the object's addresses, which
// may run code of a library's (IFUNC), and what is read-only later is not yet. A program can lie
// where objects do not: at addresses as low as those in a file.
bool is_relocated(const LoadedObject& object, const LoadedObject& program);

// As many as there is room for.
size_t find_references(const LoadedObject& object, std::span<Reference> found);

// Each slot gets its value in one store, data only if it is as it was; nobody who calls meanwhile
// sees anything else. False: the system does not let us, and nothing was written. Callers take
// turns.
struct Change {
  void* from;
  void* to;
};
bool write_slots(const LoadedObject& object, std::span<const Reference> references,
                 std::span<const Change> changes);
void* read_slot(const Reference& reference);

// May the dynamic linker write it once the object is relocated? It is writable for good then.
bool can_be_late(const LoadedObject& object, const Reference& reference);
// Only if it is as `from` says.
void replace_in_slot(const Reference& reference, Change change);

}  // namespace sealane::preload
