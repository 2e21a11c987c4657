// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A sealer without libcrypto: a driver with AES-GCM of its own inside, whose work nobody outside
// sees. What the real driver does is unconfirmed, so a runtime must cope with that too.
#pragma once

#include "emu/seal/sealer.h"

namespace sealane::emu {

const sealane_emu_sealing* own_sealing();

}  // namespace sealane::emu
