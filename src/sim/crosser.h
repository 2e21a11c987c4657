// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A copy thread, simulated: what Copies lets it take it hands to a modelled driver, in one call as
// long as the platform says (whole), or message by message where something may have been sealed
// ahead (by turns). What crosses early waits until it may land. Tells the oracle what crosses the
// bus.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/copy/copies.h"
#include "sim/channel.h"
#include "sim/program_call.h"
#include "sim/seal_crew.h"
#include "sim/world.h"

namespace sealane::sim {

constexpr ErrorCode kForged = 214;

// What the copy threads have in common.
struct Carrying {
  struct Known {  // a copy under way
    ProgramCopy copy;
    std::vector<uint64_t> snapshot;  // whole, then each message
  };

  World& world;
  const Platform ours;  // with the engine and the workers the policy says
  const uint32_t workers;
  Copies copies;
  std::map<CopyId, Known> known{};
  SlotMemory slots{};
  uint32_t crossings = 0;  // threads that have something in the driver
  std::optional<ScriptedFault::Kind> tamper_next{};
  std::vector<CopyId> at_turn{};

  uint32_t helpers() const { return world.setup.policy.parallel ? workers : 0; }
  uint64_t threads_at_work() const { return crossings + (slots.sealing > 0 ? workers : 0); }
  const SealedPath& path(Direction direction) const {
    return direction == Direction::to_device ? ours.to_device.cc : ours.to_host.cc;
  }
};

class Crosser {
 public:
  Crosser(Carrying& shared, CopyThreadId id, std::unique_ptr<SealCrew> ahead)
      : shared_(shared), world_(shared.world), id_(id), ahead_(std::move(ahead)) {
    channel_.staged = world_.random.chance(world_.setup.staged);
  }

  Channel& channel() { return channel_; }
  SealCrew* ahead() const { return ahead_.get(); }  // bulk: what seals ahead for it

  // Takes what may go, if it has nothing; goes on, if a worker has kept it waiting. True: what it
  // had is over.
  bool go_on();
  void sent();     // the driver has a message of it
  bool crossed();  // the driver's call has returned. True: what it had is over

  void delivered_early();                     // to the device
  bool is_behind_another(CopyId copy) const;  // of those that travel together, in a sound context

  // Then these are to be done.
  std::vector<Ending> endings;
  size_t ended = 0;
  // They are done: what it was.
  Crossing release();

 private:
  using Known = Carrying::Known;
  enum class Awaits : uint8_t { nothing, message, end, landing };

  void start();
  void begin();
  void begin_crossing();
  Duration whole_time(const Crossing& crossing, Direction direction) const;
  void start_whole();
  void start_pads();
  Range next_part() const;
  void start_message();
  bool end_crossing();
  bool failed() const;
  void replace_context();
  void finish_whole();
  void deliver_to_device();
  void deliver_to_host();
  void judge_bus(bool more);
  void reject(const char* which);

  Carrying& shared_;
  World& world_;
  const CopyThreadId id_;
  const std::unique_ptr<SealCrew> ahead_;
  Channel channel_;
  const Crossing* crossing_ = nullptr;
  std::vector<uint64_t> contents_;  // of each copy, as it was read
  bool by_turns_ = false;
  uint64_t sent_ = 0;                // by turns: messages that the driver has sealed
  bool seen_ = false;                //   the next one has been shown,
  Verdict verdict_;                  //   and this is to be done with it;
  uint64_t content_ = 0;             //   sealed now it holds this
  Awaits awaits_ = Awaits::nothing;  // a worker, or other threads
  bool late_ = false;                // there was no memory to cross early
  Duration guard_debt_{0};           // guards it has looked at
  Instant across_{};
  std::optional<ScriptedFault::Kind> tampered_;
  ErrorCode code_ = 0;
};

}  // namespace sealane::sim
