// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One line on stderr when the runtime starts in a process: that it is there, and with what. Whoever
// wanted it and does not see the line runs without it. SEALANE_QUIET=1 leaves it out.
//
// Pure but for say_presence().
#pragma once

#include <string>

#include "serve/options.h"

namespace sealane::serve {

struct Presence {
  bool confidential = true;  // the GPU's mode
  bool watching = false;     // somebody counts, records or draws
  bool speculates = false;   // as was decided
  unsigned workers = 0;
};

// "sealane: active: engine, async, parallel; 3 workers", without an end of line.
std::string describe(const Options& options, const Presence& presence);

void say_presence(Lookup lookup, const Options& options, const Presence& presence);

}  // namespace sealane::serve
