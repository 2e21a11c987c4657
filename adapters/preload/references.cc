// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "references.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "evp.h"

namespace sealane::preload {
namespace {

// A dynamic section as far as it tells what an object takes from others.
class Dynamic {
 public:
  explicit Dynamic(const LoadedObject& object) : object_(object) {
    for (const auto* entry = object.dynamic; entry->d_tag != DT_NULL; ++entry) read(*entry);
  }

  template <typename See>
  void for_each_relocation(See&& see) const {
    if (symbols_ == nullptr || strings_ == nullptr || versions_ == nullptr) return;
    if (calls_are_rela_) walk(calls_, call_bytes_, see);
    walk(data_, data_bytes_, see);
  }

  template <typename See>
  bool all_relocations(See&& see) const {
    return (!calls_are_rela_ || all(calls_, call_bytes_, see)) && all(data_, data_bytes_, see);
  }

  bool is_weak(size_t symbol) const {
    return symbols_ == nullptr || ELF64_ST_BIND(symbols_[symbol].st_info) == STB_WEAK;
  }

  const char* name(size_t symbol) const { return strings_ + symbols_[symbol].st_name; }

  // Of the symbol that is asked for; nullptr: without.
  const char* version(size_t symbol) const {
    const unsigned wanted = versions_[symbol] & 0x7fff;
    const auto* need = needs_;
    for (size_t i = 0; need != nullptr && i < need_count_; ++i) {
      const auto* one = after<ElfW(Vernaux)>(need, need->vn_aux);
      for (unsigned k = 0; k < need->vn_cnt; ++k) {
        if ((one->vna_other & 0x7fff) == wanted) return strings_ + one->vna_name;
        one = after<ElfW(Vernaux)>(one, one->vna_next);
      }
      if (need->vn_next == 0) break;
      need = after<ElfW(Verneed)>(need, need->vn_next);
    }
    return nullptr;
  }

 private:
  template <typename Wanted>
  static const Wanted* after(const void* from, size_t bytes) {
    return reinterpret_cast<const Wanted*>(static_cast<const char*>(from) + bytes);
  }

  // The dynamic linker has put addresses in place of some offsets, and not of others.
  template <typename Target>
  void place(const Target*& target, const ElfW(Dyn) & entry) const {
    uintptr_t at = entry.d_un.d_ptr;
    if (!object_.holds(at)) at += object_.base;
    target = object_.holds(at) ? reinterpret_cast<const Target*>(at) : nullptr;
  }

  void read(const ElfW(Dyn) & entry) {
    switch (entry.d_tag) {
      case DT_JMPREL:
        return place(calls_, entry);
      case DT_PLTRELSZ:
        call_bytes_ = entry.d_un.d_val;
        return;
      case DT_PLTREL:
        calls_are_rela_ = entry.d_un.d_val == DT_RELA;
        return;
      case DT_RELA:
        return place(data_, entry);
      case DT_RELASZ:
        data_bytes_ = entry.d_un.d_val;
        return;
      case DT_SYMTAB:
        return place(symbols_, entry);
      case DT_STRTAB:
        return place(strings_, entry);
      case DT_VERSYM:
        return place(versions_, entry);
      case DT_VERNEED:
        return place(needs_, entry);
      case DT_VERNEEDNUM:
        need_count_ = entry.d_un.d_val;
        return;
      default:
        return;
    }
  }

  template <typename See>
  static void walk(const ElfW(Rela) * table, size_t bytes, See&& see) {
    for (size_t i = 0; table != nullptr && i < bytes / sizeof *table; ++i) see(table[i]);
  }

  template <typename See>
  static bool all(const ElfW(Rela) * table, size_t bytes, See&& see) {
    for (size_t i = 0; table != nullptr && i < bytes / sizeof *table; ++i) {
      if (!see(table[i])) return false;
    }
    return true;
  }

  const LoadedObject& object_;
  const ElfW(Rela) * calls_ = nullptr;
  const ElfW(Rela) * data_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const ElfW(Versym) * versions_ = nullptr;
  const ElfW(Verneed) * needs_ = nullptr;
  size_t call_bytes_ = 0;
  size_t data_bytes_ = 0;
  size_t need_count_ = 0;
  bool calls_are_rela_ = false;
};

constexpr size_t kNone = SIZE_MAX;

size_t hook_of(const Dynamic& dynamic, size_t symbol) {
  const char* const name = dynamic.name(symbol);
  if (std::strncmp(name, "EVP_", 4) != 0) return kNone;
  const auto hooks = evp_hooks();
  for (size_t i = 0; i < hooks.size(); ++i) {
    if (std::strcmp(hooks[i].name, name) != 0) continue;
    const char* const version = dynamic.version(symbol);
    return version != nullptr && std::strcmp(version, hooks[i].version) == 0 ? i : kNone;
  }
  return kNone;
}

std::optional<SlotKind> kind_of(const ElfW(Rela) & relocation) {
  const auto type = ELF64_R_TYPE(relocation.r_info);
  if (type == R_X86_64_JUMP_SLOT) return SlotKind::call;
  if (type == R_X86_64_GLOB_DAT) return SlotKind::address;
  if (type == R_X86_64_64 && relocation.r_addend == 0) return SlotKind::data;
  return std::nullopt;
}

std::atomic_ref<void*> value(const Reference& reference) {
  return std::atomic_ref<void*>(*reference.at);
}

}  // namespace

LoadedObject describe(const dl_phdr_info& info) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  LoadedObject object{.base = info.dlpi_addr, .begin = UINTPTR_MAX, .writable_begin = UINTPTR_MAX};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& header = info.dlpi_phdr[i];
    const uintptr_t begin = info.dlpi_addr + header.p_vaddr;
    const uintptr_t end = begin + header.p_memsz;
    if (header.p_type == PT_LOAD) {
      object.begin = std::min(object.begin, begin);
      object.end = std::max(object.end, end);
      if ((header.p_flags & PF_W) == 0) continue;
      object.writable_begin = std::min(object.writable_begin, begin);
      object.writable_end = std::max(object.writable_end, end);
    } else if (header.p_type == PT_GNU_RELRO) {
      object.read_only_begin = begin & ~(page - 1);
      object.read_only_end = end & ~(page - 1);
    } else if (header.p_type == PT_DYNAMIC) {
      object.dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    }
  }
  return object;
}

bool is_relocated(const LoadedObject& object, const LoadedObject& program) {
  if (object.dynamic == nullptr || object.base == 0) return true;
  const auto has_its_base = [&](uintptr_t at) {
    return at >= object.end - object.base || program.holds(at);
  };
  const Dynamic dynamic(object);
  return dynamic.all_relocations([&](const ElfW(Rela) & relocation) {
    const uintptr_t at = object.base + relocation.r_offset;
    if (at < object.writable_begin || at >= object.writable_end || at % sizeof(void*) != 0) {
      return true;
    }
    const auto now = reinterpret_cast<uintptr_t>(read_slot({reinterpret_cast<void**>(at), 0, {}}));
    const bool weak = dynamic.is_weak(ELF64_R_SYM(relocation.r_info));
    switch (ELF64_R_TYPE(relocation.r_info)) {
      case R_X86_64_JUMP_SLOT:
        return weak || has_its_base(now);
      case R_X86_64_IRELATIVE:
        return has_its_base(now);
      case R_X86_64_GLOB_DAT:
        return weak || now != 0;
      case R_X86_64_64:  // nobody but the dynamic linker writes there
        return weak || now != 0 || at < object.read_only_begin || at >= object.read_only_end;
      default:
        return true;
    }
  });
}

size_t find_references(const LoadedObject& object, std::span<Reference> found) {
  if (object.dynamic == nullptr) return 0;
  const Dynamic dynamic(object);
  size_t count = 0;
  dynamic.for_each_relocation([&](const ElfW(Rela) & relocation) {
    const auto kind = kind_of(relocation);
    if (!kind || count == found.size()) return;
    const uintptr_t at = object.base + relocation.r_offset;
    const bool writable = at >= object.writable_begin && at < object.writable_end;
    if (!writable || at % sizeof(void*) != 0) return;
    const size_t hook = hook_of(dynamic, ELF64_R_SYM(relocation.r_info));
    if (hook != kNone) found[count++] = {reinterpret_cast<void**>(at), hook, *kind};
  });
  return count;
}

bool write_slots(const LoadedObject& object, std::span<const Reference> references,
                 std::span<const Change> changes) {
  void* const sealed = reinterpret_cast<void*>(object.read_only_begin);
  const bool any = object.read_only_begin < object.read_only_end;
  const size_t bytes = any ? object.read_only_end - object.read_only_begin : 0;
  if (any && mprotect(sealed, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  for (size_t i = 0; i < references.size(); ++i) {
    if (changes[i].from == changes[i].to) continue;
    if (references[i].kind == SlotKind::data) {
      replace_in_slot(references[i], changes[i]);
    } else {
      value(references[i]).store(changes[i].to);
    }
  }
  if (any) mprotect(sealed, bytes, PROT_READ);
  return true;
}

void* read_slot(const Reference& reference) { return value(reference).load(); }

bool can_be_late(const LoadedObject& object, const Reference& reference) {
  const auto at = reinterpret_cast<uintptr_t>(reference.at);
  return reference.kind == SlotKind::call &&
         (at < object.read_only_begin || at >= object.read_only_end);
}

void replace_in_slot(const Reference& reference, Change change) {
  value(reference).compare_exchange_strong(change.from, change.to);
}

}  // namespace sealane::preload
