// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The linked build of the driver has libcrypto among its own libraries.

#include "emu/channel/sealing.h"

namespace sealane::emu {

const sealane_emu_sealing* reach_sealing() { return sealane_emu_sealing_v1(); }

}  // namespace sealane::emu
