// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Carries a schedule out, record by record: tells which record of which step can be done next.
//
// Rules: the steps that use one wire use it in schedule order; within a step records go in order;
// a step with `after` stays behind the step it names. Among all that is possible, what continues
// the record just finished comes first (it is in cache), then the steps take turns.
//
// Use: poll() with an object that knows the wires, do the task, handle_done(); when poll() returns
// nothing and done() is false, wait for a wire. Pure, not synchronised; allocates when constructed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/collective/schedule.h"

namespace sealane {

struct Task {
  uint32_t step = 0;
  uint64_t record = 0;  // of the step's block
  uint32_t number = 0;  // of the record among all of the schedule, the same on all ranks
  uint64_t offset = 0;  // of the record in the block
  uint32_t bytes = 0;
};

class Execution {
 public:
  Execution(const Schedule& schedule, uint32_t record_bytes);  // keeps a reference to the schedule

  // Wires: bool readable(const Step&) and bool writable(const Step&), asked only of steps that
  // read or write a wire.
  template <typename Wires>
  std::optional<Task> poll(Wires& wires) {
    if (continuation_ >= 0 && ready(static_cast<uint32_t>(continuation_), wires)) {
      return task(static_cast<uint32_t>(continuation_));
    }
    for (size_t tries = 0; tries < active_.size(); ++tries) {
      turn_ = turn_ + 1 < active_.size() ? turn_ + 1 : 0;
      if (ready(active_[turn_], wires)) return task(active_[turn_]);
    }
    return std::nullopt;
  }

  void handle_done(const Task& task);

  bool done() const { return completed_ == schedule_.steps.size(); }

  // The peers whose record or room is missing now: whom to blame if nothing goes on. Wires has also
  // void add_laggards(std::vector<uint32_t>& peers): those for whom a record to everyone has no
  // room.
  template <typename Wires>
  std::vector<uint32_t> waiting_for(Wires& wires) const {
    std::vector<uint32_t> peers;
    for (const uint32_t index : active_) {
      const Step& step = schedule_.steps[index];
      if (held_back(index)) continue;
      if (step.from != kNobody && !wires.readable(step)) peers.push_back(step.from);
      if (step.to == kNobody || wires.writable(step)) continue;
      if (step.to == kEveryone) {
        wires.add_laggards(peers);
      } else {
        peers.push_back(step.to);
      }
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }

 private:
  static constexpr int32_t kNone = -1;

  struct State {
    uint64_t records = 0;
    uint64_t finished = 0;
    int32_t next_reader = kNone;  // the step that uses the same wire next
    int32_t next_writer = kNone;
    int32_t dependent = kNone;      // the step that is `after` this one
    uint8_t unfinished_before = 0;  // steps that hold a wire this one needs
    bool active = false;
  };

  template <typename Wires>
  bool ready(uint32_t index, Wires& wires) const {
    const State& state = states_[index];
    const Step& step = schedule_.steps[index];
    if (!state.active || state.finished == state.records || held_back(index)) return false;
    return (step.from == kNobody || wires.readable(step)) &&
           (step.to == kNobody || wires.writable(step));
  }

  bool held_back(uint32_t index) const {
    const int32_t after = schedule_.steps[index].after;
    return after >= 0 && states_[static_cast<size_t>(after)].finished <= states_[index].finished;
  }

  void link_wires();
  Task task(uint32_t index) const;
  void activate(uint32_t index);
  void complete(uint32_t index);
  void release(int32_t next);

  const Schedule& schedule_;
  uint32_t record_bytes_;
  std::vector<uint64_t> first_numbers_;  // of each block's records
  std::vector<State> states_;
  std::vector<uint32_t> active_;
  size_t turn_ = 0;
  size_t completed_ = 0;
  int32_t continuation_ = kNone;
};

}  // namespace sealane
