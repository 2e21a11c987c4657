// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What seals ahead for one copy thread, simulated: carries out what core/pipeline/speculator.h asks
// for with guards and workers that share each record, and keeps what the slots hold.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/pipeline/speculator.h"
#include "core/predict/mapped_ranges.h"
#include "sim/channel.h"
#include "sim/world.h"

namespace sealane::sim {

// Records sealed ahead under way or kept, of all copy threads together.
struct SlotMemory {
  uint64_t bytes = 0;
  uint32_t sealing = 0;  // of them, with workers
};

class SealCrew {
 public:
  SealCrew(World& world, SlotMemory& memory, uint32_t lane, uint32_t lanes, uint32_t workers);

  Speculator& speculator() { return speculator_; }
  const Speculator& speculator() const { return speculator_; }

  Duration write(const Range& range);  // the program writes: what guards cost it
  // Looks at the guards of this memory and tells what was written. What that costs.
  Duration check_guards(const Range& host);
  void allocated(const Range& range, bool guardable);
  void pump(uint32_t crossings);  // lets the core decide; so many copies need the workers too
  void worker_done(size_t job);
  void stall_next() { stall_next_ = true; }
  void stall(Duration duration) { from_ = world_.now() + duration; }

  const Oracle::Sealed& slot(SlotId id) const { return slots_[id].sealed; }
  // The driver seals a message of its own. True: a slot was sent in its place.
  bool own_message(const Channel& channel, uint64_t bytes);
  std::optional<Range> some_planned(uint64_t pick) const;
  // Snapshots: what the messages of a copy hold.
  void keep(CopyId copy, const Range& host, std::vector<uint64_t> contents);
  void forget(CopyId copy);
  void count(Counters& counters) const;

 private:
  struct Guarded {
    Range range;
    GuardKind kind;
    std::vector<Range> dirty;
  };
  struct Slot {
    Oracle::Sealed sealed;
    Range host{};
    bool digested = false;  // and so compared in the request
  };
  struct Job {
    SealSlot what;
    uint64_t content = 0;
    bool from_memory = true;
    bool digested = false;
  };
  struct Snapshot {
    CopyId copy;
    Range host;
    std::vector<uint64_t> contents;
  };

  void run(const SealAction& action, uint32_t crossings);
  void start(const SealSlot& what, uint32_t crossings);
  void arm(const Guard& guard);
  Duration compare_digests(const Range& host);
  GuardKind guard_at(const Range& host) const;
  void wipe(SlotId slot);

  World& world_;
  SlotMemory& memory_;
  const uint32_t lane_;
  const uint32_t workers_;
  std::unique_ptr<GuessSource> source_;
  Speculator speculator_;
  std::vector<Slot> slots_;
  std::vector<Guarded> guarded_;
  MappedRanges unprotectable_;  // managed memory: its pages are the driver's
  std::vector<Job> jobs_;
  std::optional<Instant> timer_;
  std::vector<Snapshot> snapshots_;
  Duration guard_debt_{0};  // arming, paid by the next worker
  Instant from_{};          // nobody begins before
  bool stall_next_ = false;
};

// No more than there are cores beside the thread that sends.
uint32_t workers_for(const Setup& setup);
// The policy as it is on this machine: one that seals ahead only where that pays may not do so.
Policy settled_policy(const Setup& setup);

}  // namespace sealane::sim
