// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The simulated `serve`: drives core/copy as the threads of the real one do, on a modelled driver.
// Costs come from the platform, decisions from the core.
//
//   1. copies        the program's call: what Copies says is done in it, or the copy is passed
//   2. start         a copy thread that is free takes what may go and hands it to the driver:
//      whole         in one call, as long as the platform says;
//      by turns      message by message, where something may have been sealed ahead
//   3. crossed       the call has returned; endings are done one after the other
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/copy/copies.h"
#include "sim/channel.h"
#include "sim/program_call.h"
#include "sim/seal_crew.h"
#include "sim/world.h"

namespace sealane::sim {

constexpr ErrorCode kForged = 214;
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
  void tamper_next(ScriptedFault::Kind how) { tamper_next_ = how; }
  std::optional<Range> some_planned(uint64_t pick) const;

  void count(Counters& counters) const;

 private:
  struct Crosser {  // a copy thread
    const Crossing* crossing = nullptr;
    Channel channel;
    std::unique_ptr<SealCrew> ahead;
    std::vector<uint64_t> contents;  // of each copy, as it was read
    bool by_turns = false;
    uint64_t sent = 0;     // by turns: messages that the driver has sealed
    bool seen = false;     //   the next one has been shown,
    Verdict verdict;       //   and this is to be done with it;
    uint64_t content = 0;  //   sealed now it holds this
    enum class Awaits : uint8_t { nothing, message, end };
    Awaits awaits = Awaits::nothing;  // a worker
    Duration guard_debt{0};           // guards it has looked at
    Instant across{};
    std::optional<ScriptedFault::Kind> tampered;
    ErrorCode code = 0;
    std::vector<Ending> endings;
    size_t ended = 0;
  };
  struct Mark {
    uint32_t stream;
    uint64_t count;
    EventKey event;
  };
  struct Known {  // a copy under way
    ProgramCopy copy;
    std::vector<uint64_t> snapshot;  // whole, then each message
  };

  Channel& channel(uint32_t index) { return crossers_[to_device_[index]].channel; }
  CopyCall call_of(const ProgramCopy& copy) const;
  bool open_thread(CopyThreadId thread);
  bool perform(const CallStep& step, Duration& cost);
  void take_snapshot(CopyId copy);
  void start(CopyThreadId id, Crosser& crosser);
  void begin_crossing(CopyThreadId id, Crosser& crosser);
  void start_whole(CopyThreadId id, Crosser& crosser);
  Duration whole_time(const Crossing& crossing, Direction direction);
  void start_pads(CopyThreadId id, Crosser& crosser);
  void start_message(CopyThreadId id, Crosser& crosser);
  void replace_context(CopyThreadId id, Crosser& crosser);
  Range next_part(const Crosser& crosser) const;
  void finish_whole(CopyThreadId id, Crosser& crosser);
  void end_crossing(CopyThreadId id, Crosser& crosser);
  void deliver_to_device(CopyThreadId id, Crosser& crosser);
  void deliver_to_host(Crosser& crosser);
  void reject(Crosser& crosser, const char* which);
  void judge_bus(Crosser& crosser, bool more);
  void next_ending(CopyThreadId id, Crosser& crosser);
  Duration perform(const Ending& ending);
  void finish(const Ending& ending);
  void delivered(CopyId copy);
  uint32_t crossings() const;
  uint64_t threads_of_ours() const;
  uint32_t helpers() const { return world_.setup.policy.parallel ? workers_ : 0; }
  const SealedPath& path(Direction direction) const;
  std::vector<uint64_t> contents_of(const Range& host) const;

  World& world_;
  Threads& threads_;
  Platform ours_;  // with the engine and the workers the policy says
  const uint32_t workers_;
  Copies copies_;
  std::map<CopyThreadId, Crosser> crossers_;
  std::vector<CopyThreadId> to_device_;  // that are open
  std::map<CopyId, Known> known_;
  std::vector<Mark> marks_;
  CallPlan plan_;
  std::map<uint64_t, std::pair<Range, bool>> allocations_;  // may be sealed ahead; guardable
  std::vector<Range> mapped_;                               // the device can write it
  std::vector<Range> registered_;
  SlotMemory slot_memory_;
  std::vector<CopyId> at_turn_;
  std::optional<ScriptedFault::Kind> tamper_next_;
};

// The platform as it is with our engine behind the driver's calls, on so many more cores.
Platform with_engine(const Platform& platform, const Policy& policy, uint32_t helpers);

}  // namespace sealane::sim
