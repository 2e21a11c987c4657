// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The copy threads there are: opened when the machine asks for one, with what seals ahead for it,
// and given up when the program wants their contexts. Which copy is whose is the machine's to say
// (core/copy/copies.h).
//
// Thread-safe. Lock order: a stream's mutex, UnderWay's, a LiveSpeculator's. (give_up() has a lock
// of its own around all of them.) Fails by having no
// thread: the driver has no context for one, or (open_missing() says it) ours are of no use.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <span>
#include <utility>
#include <vector>

#include "os/worker_pool.h"
#include "serve/copy_thread.h"
#include "serve/program_memory.h"
#include "serve/program_streams.h"
#include "serve/slot_budget.h"
#include "serve/speculation.h"
#include "serve/under_way.h"

namespace sealane::serve {

class CopyCrew {
 public:
  CopyCrew(GpuDriver& driver, UnderWay& under_way, ProgramMemory& memory, WorkerPool& pool,
           const SpeculationChoice& speculation)
      : driver_(driver),
        under_way_(under_way),
        memory_(memory),
        pool_(pool),
        speculation_(speculation) {}

  // The threads this copy should have. Not null: why no copy may be carried any more.
  const char* open_missing(const CopyCall& call);
  CopyThread* thread_at(CopyThreadId id);
  // A call that puts copies into a stream holds this: no thread is given up meanwhile.
  [[nodiscard]] std::shared_lock<std::shared_mutex> enter() { return std::shared_lock(entered_); }
  // Gives contexts back. True if there was something to give. given(): how often there was, for
  // those who come while others do.
  bool give_up(ProgramStreams& streams);
  uint64_t given() const { return given_.load(); }

  // --- for those who seal ahead
  void add_host_memory(const Range& range);  // may be guessed before any copy has touched it
  void check_guards(std::span<const CopyCall> calls);  // whose snapshots were taken just now
  void abandon();                                      // in the child of a fork

  // Returns when no copy touches this memory, and nobody reads it ahead of any.
  void drain(const Range& host_or_device);

 private:
  std::unique_ptr<CopyThread> open(CopyThreadId id, const CopyCall& call, const char*& why);
  Code probe(CopyThread& thread, const CopyCall& call);
  LiveSpeculator* make_speculator(int device, int lane);
  std::vector<LiveSpeculator*> speculators();
  std::set<const CopyThread*> find_busy(ProgramStreams& streams);
  bool any_mending() const;
  int next_number(int device);

  GpuDriver& driver_;
  UnderWay& under_way_;
  ProgramMemory& memory_;
  WorkerPool& pool_;
  const SpeculationChoice& speculation_;

  std::shared_mutex entered_;
  std::mutex giving_;
  std::atomic<uint64_t> given_{0};
  // These under UnderWay's mutex.
  std::vector<std::unique_ptr<CopyThread>> threads_;  // by id
  std::vector<std::unique_ptr<CopyThread>> retired_;  // closed; their threads may still be leaving
  std::vector<LiveSpeculator*> speculators_;          // never deleted
  // One copy thread is opened at a time; these under its mutex.
  std::mutex opening_;
  std::vector<int> lanes_opened_;       // of each device: their numbers
  std::vector<bool> reached_;           // of each device: a context of ours can use its memory
  std::unique_ptr<SlotBudget> budget_;  // of all slots
};

}  // namespace sealane::serve
