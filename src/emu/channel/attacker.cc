// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/channel/attacker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "emu/truth/counters.h"

namespace sealane::emu {

Attacker& Attacker::get() {
  static Attacker& made = *new Attacker(config()->adversary);
  return made;
}

Attacker::Recording Attacker::record(const BusMessage& message) {
  return {{message.data, message.data + message.bytes}, message.tag};
}

void Attacker::deliver(const Recording& recording, BusMessage& message) {
  std::memcpy(message.data, recording.data.data(), recording.data.size());
  message.bytes = recording.data.size();
  message.tag = recording.tag;
}

void Attacker::arm(Attack attack, Direction direction) {
  const std::lock_guard lock(mutex_);
  plan_ = {attack, seen_ + 1, direction};
  armed_.store(true);
}

bool Attacker::strike(Direction direction, Bus& bus, uint32_t index, bool may_hold) {
  if (!armed_.load()) return false;
  const std::lock_guard lock(mutex_);
  if (plan_.direction != direction) return false;
  ++seen_;
  const Recording genuine = record(bus.slot(index));
  const bool hold = act(bus, index, may_hold);
  if (!first_) first_ = genuine;
  previous_ = genuine;
  if (!holding_ && seen_ > plan_.message) armed_.store(false);  // its successor was the last chance
  return hold;
}

bool Attacker::act(Bus& bus, uint32_t index, bool may_hold) {
  BusMessage& message = bus.slot(index);
  if (holding_) {  // the successor of a message that is to change places with it
    holding_ = false;
    const Recording here = record(message);
    deliver(*previous_, message);
    deliver(here, bus.slot(index - 1));
    return false;
  }
  const uint64_t target = plan_.message;
  const bool now = seen_ == target;
  const bool next = seen_ == target + 1;
  const bool has_past = first_.has_value();
  switch (plan_.attack) {
    case Attack::flip:
      if (!now || message.bytes == 0) return false;
      message.data[message.bytes / 2] ^= 0x10;
      break;
    case Attack::truncate:
      if (!now) return false;
      message.bytes /= 2;
      break;
    case Attack::drop:
      if (!now) return false;
      std::memset(message.data, 0, message.bytes);
      message.bytes = 0;
      message.tag = {};
      break;
    case Attack::duplicate:
      if (!next) return false;
      deliver(*previous_, message);
      break;
    case Attack::swap:
      if (now && may_hold) {
        holding_ = true;
      } else if ((now && has_past) || (next && target == 1)) {
        deliver(*previous_, message);
      } else {
        return false;
      }
      break;
    case Attack::replay:
      if (!(now && has_past) && !(next && target == 1)) return false;
      deliver(*first_, message);
      break;
    case Attack::none:
      return false;
  }
  ++counters().attacks;
  return holding_;
}

}  // namespace sealane::emu
