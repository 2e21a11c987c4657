// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The usual build of the driver has no libcrypto of its own: it opens the helper library beside it,
// or finds libcrypto's functions one by one.

#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "emu/channel/own_sealing.h"
#include "emu/channel/sealing.h"
#include "emu/config/config.h"

namespace sealane::emu {
namespace {

constexpr const char* kHelper = "libsealane-emu-seal.so";

// The helper lies where the driver was loaded from.
std::string helper_path() {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&reach_sealing), &here) == 0) return kHelper;
  const std::string driver = here.dli_fname;
  return driver.substr(0, driver.rfind('/') + 1) + kHelper;
}

const sealane_emu_sealing* from_helper(int flags) {
  void* helper = dlopen(helper_path().c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  void* entry = helper != nullptr ? dlsym(helper, "sealane_emu_sealing_v1") : nullptr;
  if (entry == nullptr) {
    std::fprintf(stderr, "sealane emulated GPU: cannot load its sealing helper: %s\n", dlerror());
    return nullptr;
  }
  return reinterpret_cast<const sealane_emu_sealing* (*)()>(entry)();
}

const sealane_emu_sealing* find() {
  switch (config()->reach) {
    case Reach::helper:
      return from_helper(0);
    case Reach::deepbind:
      return from_helper(RTLD_DEEPBIND);
    case Reach::dlsym:
      return sealane_emu_sealing_v1();
    case Reach::linked:
      std::fprintf(
          stderr,
          "sealane emulated GPU: SEALANE_EMU_REACH=linked needs the driver in lib/emu/linked;"
          " 'sealane run --emulate --reach linked' finds it\n");
      return nullptr;
    case Reach::own:
      return own_sealing();
  }
  return nullptr;
}

}  // namespace

const sealane_emu_sealing* reach_sealing() {
  static const sealane_emu_sealing* const found = find();
  return found;
}

}  // namespace sealane::emu
