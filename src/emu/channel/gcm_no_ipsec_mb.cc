// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Built instead of gcm_ipsec_mb.cc where the library does not exist.

#include "emu/channel/gcm.h"

namespace sealane::emu {

std::unique_ptr<Gcm> make_ipsec_mb_gcm(const GcmKey&) { return nullptr; }

}  // namespace sealane::emu
