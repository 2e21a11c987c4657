// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The adversary on the bus: does one thing to one message (config.h, Adversary). It sees and writes
// everything that lies in a bounce buffer and knows no key.
//
//   flip       one bit of the message
//   truncate   the second half is cut off
//   drop       the receiver finds an empty buffer in its place
//   duplicate  it is delivered again in place of its successor
//   swap       it changes places with its successor; the last of a transfer with its predecessor
//   replay     the first message ever seen is delivered in its place
//
// Thread-safe.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "emu/channel/bus.h"

namespace sealane::emu {

class Attacker {
 public:
  static Attacker& get();

  // Does this to the next message in this direction, whatever was planned before.
  void arm(Attack attack, Direction direction);

  // A message was published. True: its delivery is held back until the next one is published
  // (`may_hold`: there is one, and room for it).
  bool strike(Direction direction, Bus& bus, uint32_t index, bool may_hold);

 private:
  struct Recording {
    std::vector<uint8_t> data;
    GcmTag tag{};
  };

  explicit Attacker(const Adversary& plan) : armed_(plan.attack != Attack::none), plan_(plan) {}
  static Recording record(const BusMessage& message);
  static void deliver(const Recording& recording, BusMessage& message);
  bool act(Bus& bus, uint32_t index, bool may_hold);

  std::atomic<bool> armed_;  // spares everybody the mutex while there is no plan
  std::mutex mutex_;         // what follows
  Adversary plan_;
  uint64_t seen_ = 0;
  bool holding_ = false;
  std::optional<Recording> first_;
  std::optional<Recording> previous_;
};

}  // namespace sealane::emu
