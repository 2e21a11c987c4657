// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which rank has a wrong key. A rank whose handshake fails knows that two keys differ, not whose is
// the wrong one, and others only hear that somebody left. So all ranks say at the rendezvous which
// key they have, and all come to the same answer. Nothing is admitted because of it: a lie there
// makes an error name another rank. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/session/identity.h"

namespace sealane {

// Equal for equal keys, and of no other use: eight bytes derived from a key of 32. Empty with
// certificates.
std::string key_id(const Credentials& credentials);

// By rank; empty where nothing was said. Nothing if no two differ.
std::optional<Error> who_has_another_key(const std::vector<std::string>& ids);

}  // namespace sealane
