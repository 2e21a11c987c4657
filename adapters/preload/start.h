// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// When the runtime begins and ends. Loading does nothing but read options; the runtime starts when
// the program's cuInit succeeded and the driver says that CC mode is on.
#pragma once

namespace sealane::preload {

// SEALANE_DISABLE, or the child of a fork: hooks pass everything on.
bool disabled();

// The program calls cuInit: what the driver takes from libcrypto in it comes from us already.
void driver_starts();

// The program's cuInit succeeded. Decides once whether there is anything to do.
void driver_is_up();

// It failed. Until the next one there is nothing to do, unless another one has succeeded.
void driver_did_not_start();

}  // namespace sealane::preload
