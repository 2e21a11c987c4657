// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/channel/gcm.h"

namespace sealane::emu {

std::unique_ptr<Gcm> make_gcm(const GcmKey& key) {
  if (auto fast = make_ipsec_mb_gcm(key)) return fast;
  return make_portable_gcm(key);
}

}  // namespace sealane::emu
