// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "libcrypto.h"

#include <dlfcn.h>

#include <cstring>

namespace sealane::preload {

bool find_libcrypto(Libcrypto& table, void* scope) {
  const auto find = [&](auto*& slot, const char* symbol, const char* version, bool needed) {
    void* found = dlvsym(scope, symbol, version);
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(found);
    return found != nullptr || !needed;
  };
#define SEALANE_FIND(member, type, symbol, version) &&find(table.member, #symbol, version, true)
#define SEALANE_TRY(member, type, symbol, version) &&find(table.member, #symbol, version, false)
  return true SEALANE_HOOKED_LIBCRYPTO(SEALANE_FIND) SEALANE_ASKED_LIBCRYPTO(SEALANE_FIND)
      SEALANE_HOOKED_NEWER_LIBCRYPTO(SEALANE_TRY);
#undef SEALANE_FIND
#undef SEALANE_TRY
}

constinit Libcrypto libcryptos[kMaxLibcryptos];

size_t keep_libcrypto(const Libcrypto& table) {
  static size_t count = 0;
  for (size_t i = 0; i < count; ++i) {
    if (std::memcmp(&libcryptos[i], &table, sizeof table) == 0) return i;
  }
  if (count == kMaxLibcryptos) return kMaxLibcryptos;
  libcryptos[count] = table;
  return count++;
}

}  // namespace sealane::preload
