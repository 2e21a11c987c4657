// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/presence.h"

#include <cstring>
#include <utility>

#include "base/text.h"
#include "watch/output.h"

namespace sealane::serve {
namespace {

std::string parts(const Options& options, bool speculates) {
  std::string out;
  for (const auto& [on, name] : {std::pair(options.engine, "engine"),
                                 {options.async, "async"},
                                 {options.parallel, "parallel"},
                                 {options.coalesce, "coalesce"},
                                 {options.registration, "register"},
                                 {speculates, "speculate"},
                                 {options.pinned, "pinned"}}) {
    if (on) out += concat(out.empty() ? "" : ", ", name);
  }
  return out;
}

}  // namespace

std::string describe(const Options& options, const Presence& presence) {
  if (!presence.confidential) {
    return concat("sealane: confidential mode is off: nothing to speed up",
                  presence.watching ? "; watching only" : "");
  }
  if (options.observe) return "sealane: observing: nothing is changed, a page follows at the end";
  const std::string on = parts(options, presence.speculates);
  if (on.empty()) {
    return concat("sealane: every part of the runtime is off",
                  presence.watching ? "; watching only" : "");
  }
  return concat("sealane: active: ", on, "; ", presence.workers,
                presence.workers == 1 ? " worker" : " workers");
}

void say_presence(Lookup lookup, const Options& options, const Presence& presence) {
  const char* quiet = lookup("SEALANE_QUIET");
  if (quiet != nullptr && *quiet != '\0' && std::strcmp(quiet, "0") != 0) return;
  say(describe(options, presence) + "\n");
}

}  // namespace sealane::serve
