// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The simulated `serve`: drives core/copy as the threads of the real one do, on a modelled driver.
// Costs come from the platform, decisions from the core.
//
//   1. copies        the program's call: what Copies says is done in it, or the copy is passed
//   2. pump          a copy thread that is free takes what may go and hands it to the driver
//                    (crosser.h)
//   3. crossed       the call has returned; endings are done one after the other
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/copy/copies.h"
#include "sim/crosser.h"
#include "sim/world.h"

namespace sealane::sim {

constexpr ErrorCode kCrashed = 700;

class Runtime {
 public:
  Runtime(World& world, Threads& threads);

  // --- the program
  // What the call costs its thread; nothing: the driver has to do all of them.
  std::optional<Duration> copies(std::span<const ProgramCopy> asked);
  void other_work(uint32_t stream);
  void capture(bool begins) { copies_.handle_capture(begins); }
  Duration write(const Range& range);     // the CPU writes: what guards cost it
  Duration shared(Duration think) const;  // what the program's own work takes beside ours
  void allocated(const Range& range, MemoryKind memory);
  void freed(const Range& range);
  bool busy(const Range& range) const { return copies_.busy(range); }
  bool may_run(uint32_t stream) const { return copies_.may_run(world_.device.context(stream)); }
  bool failed(uint32_t context) const { return copies_.failure_of(context) != 0; }
  bool mapped(const Range& range) const;

  // --- events
  void put(uint64_t call);
  void reached(uint32_t stream, uint64_t count);
  void worker_done(uint32_t lane, uint64_t job);
  void sent(uint32_t thread);
  void crossed(uint32_t thread);
  void ending_done(uint32_t thread);
  void pump();  // after every event: let the core decide

  // --- faults
  uint32_t channels() const { return static_cast<uint32_t>(to_device_.size()); }
  void driver_message(uint32_t index) { ++channel(index).driver_messages; }
  void rotate(uint32_t index) { channel(index).rotates = true; }
  void stall_worker();
  void stall_workers(Duration stall);
  void tamper_next(ScriptedFault::Kind how) { carrying_.tamper_next = how; }
  std::optional<Range> some_planned(uint64_t pick) const;

  void count(Counters& counters) const;

 private:
  struct Mark {
    uint32_t stream;
    uint64_t count;
    EventKey event;
  };

  Channel& channel(uint32_t index) { return crossers_.at(to_device_[index]).channel(); }
  CopyCall call_of(const ProgramCopy& copy) const;
  void open_thread(CopyThreadId thread);
  Duration perform(const CallStep& step);
  void take_snapshot(CopyId copy);
  void next_ending(CopyThreadId id, Crosser& crosser);
  Duration perform(const Ending& ending);
  void finish(const Ending& ending);
  void delivered(Crosser& crosser, CopyId copy);
  template <typename Visit>
  void each_crew(Visit&& visit) const {
    for (const auto& [id, crosser] : crossers_) {
      if (SealCrew* const crew = crosser.ahead()) visit(*crew);
    }
  }

  World& world_;
  Threads& threads_;
  Carrying carrying_;
  Copies& copies_ = carrying_.copies;
  std::map<CopyThreadId, Crosser> crossers_;
  std::vector<CopyThreadId> to_device_;  // that are open
  std::vector<Mark> marks_;
  CallPlan plan_;
  std::map<uint64_t, CallPlan> putting_;  // calls that are at their steps
  uint64_t calls_ = 0;
  std::map<uint64_t, std::pair<Range, bool>> allocations_;  // may be sealed ahead; guardable
  std::vector<Range> mapped_;                               // the device can write it
  std::vector<Range> registered_;
};

// The platform as it is with our engine behind the driver's calls, on so many more cores.
Platform with_engine(const Platform& platform, const Policy& policy, uint32_t helpers);

}  // namespace sealane::sim
