// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/channel/disturbance.h"

#include <utility>

#include "emu/channel/attacker.h"

namespace sealane::emu {

Disturbances& disturbances() {
  static Disturbances& made = *new Disturbances;
  return made;
}

bool disturb(std::string_view what) {
  if (what == "rotate") {
    ++disturbances().rotations;
    return true;
  }
  if (what == "message") {
    ++disturbances().messages;
    return true;
  }
  constexpr std::pair<std::string_view, Attack> kAttacks[] = {{"flip", Attack::flip},
                                                              {"drop", Attack::drop},
                                                              {"duplicate", Attack::duplicate},
                                                              {"swap", Attack::swap},
                                                              {"truncate", Attack::truncate}};
  constexpr std::string_view kToHost = ":to_host";
  const bool to_host = what.ends_with(kToHost);
  if (to_host) what.remove_suffix(kToHost.size());
  for (const auto& [word, attack] : kAttacks) {
    if (word != what) continue;
    Attacker::get().arm(attack, to_host ? Direction::to_host : Direction::to_device);
    return true;
  }
  return false;
}

}  // namespace sealane::emu
