// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Who is this thread? Told from what it reports: the program's threads ask for copies, lanes carry
// them, workers do parts of messages, and threads of the driver seal messages of their own.
//
// Each function speaks of the calling thread. Numbers count from 1 in the order of appearance.
#pragma once

#include <cstdint>
#include <string_view>

#include "serve/events.h"

namespace sealane::serve {

enum class Role : uint8_t { unknown, driver, worker, lane, application };
std::string_view to_string(Role role);

struct Actor {
  uint32_t number = 0;
  Role role = Role::unknown;
};

// The calling thread, after it reported `event`.
const Actor& actor_of(const Event& event);

}  // namespace sealane::serve
