// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A copy thread carries copies of one direction of one GPU: a thread with a context of its own. Its
// context has its own sealed channel and its own hardware queues. Which copies, when, and what
// becomes of them is the machine's to say (core/copy/copies.h); a copy thread does it with a
// driver:
//
//   1. look     which events are reached, whose sources are as they were?
//   2. carry    what the machine hands over, as one blocking call of the driver; what crosses
//               early waits for its turn to land
//   3. end      wipe, deliver, fail a context, open the gate, give memory back; in its order
//
// A forged message fails the context it came in, and with it all that is carried there. So contexts
// are replaced; where the driver has no other one, what is queued already is carried in that of
// another copy thread of the device, one crossing at a time: it may be the program's of a context
// that has nothing to do with the forgery.
//
// Memory: the copy thread asks for none. What it fills has room for the most there can be.
//
// Threads: wake() from any thread. The copy thread starts with the first copy and sleeps when
// there is none; while copies wait for work of the GPU it looks every kPoll.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/time.h"
#include "serve/crossing.h"
#include "serve/early_crossing.h"
#include "serve/gpu_driver.h"
#include "serve/live_speculator.h"
#include "serve/pinned_proxy.h"
#include "serve/program_memory.h"
#include "serve/under_way.h"

namespace sealane::serve {

class CopyThread;

struct CopyThreadOptions {
  CopyThreadId id = 0;
  int lane = 0;                     // its number, for those who watch
  LiveSpeculator* ahead = nullptr;  // outlives the copy thread
  // All there are, by id, under UnderWay's mutex. What was in there is never deleted.
  const std::vector<std::unique_ptr<CopyThread>>* crew = nullptr;
};

class CopyThread {
 public:
  // nullptr if the driver has no context for us.
  static std::unique_ptr<CopyThread> open(GpuDriver& driver, ProgramMemory& memory,
                                          UnderWay& under_way, const CopyThreadOptions& options);
  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;

  // Can its context reach this device memory? Copies a byte of it to the host.
  Code probe(uint64_t device_address);
  // There is something for it among these. Returns when its thread knows; without one, when all of
  // it is done.
  void wake(std::span<const CopyId> copies);
  // There may be room for another context now, and its own has failed. Under UnderWay's mutex.
  void mend();
  // It looks for a context, or will: not to be closed now. Under UnderWay's mutex.
  bool mending() const { return mends_now_ || (may_mend_ && thread_ == Thread::ours); }
  // Gives the context back; the thread ends. Nothing may be under way or asked for afterwards.
  void close();
  LiveSpeculator* ahead() { return ahead_; }
  GateWords& words() { return words_; }

 private:
  using Lock = std::unique_lock<std::mutex>;  // of UnderWay
  using Handed = sealane::Crossing;

  CopyThread(GpuDriver& driver, ProgramMemory& memory, UnderWay& under_way,
             const CopyThreadOptions& options, CopyContext context);

  void work();
  void rest(Lock& lock);
  bool serve_once(Lock& lock);
  // 1.
  void look_at_events(Lock& lock);
  void look_at_guards(Lock& lock);
  bool take(Lock& lock);
  // 2.
  Code carry(Lock& lock);
  void prepare_early(Lock& lock);
  void tell_context(uint64_t rooms);
  std::unique_lock<std::mutex> enter_context(bool own);
  std::unique_lock<std::mutex> enter_context_of(CopyThread& other);
  std::array<CopyThread*, kThreadsPerDevice> find_others();
  void await_landing(Lock& lock);
  bool prepare_together(Lock& lock);
  bool fetch_all();
  Code carry_together();
  Code carry_part(const HeldCopy& copy, uint64_t offset, uint64_t bytes);
  Code pad(uint64_t messages);
  void tell(const HeldCopy& copy, uint64_t offset, uint64_t bytes, Code code, Instant begin,
            Instant end, size_t together) const;
  void replace_context();
  void mend_context(Lock& lock);
  // 3.
  void end(Lock& lock, Code code);
  Code perform_all(Lock& lock);
  Code perform(const Ending& ending);
  Code deliver(const HeldCopy& copy);

  GpuDriver& driver_;
  ProgramMemory& memory_;
  UnderWay& under_way_;
  const CopyThreadId id_;
  const int lane_;
  const Direction direction_;
  const std::vector<std::unique_ptr<CopyThread>>* const crew_;

  // Who carries in its context, and who replaces it; taken without UnderWay's mutex, one at a time.
  std::mutex using_;
  CopyContext context_;               // replaced when it has failed
  bool broken_ = false;               // it has, and there was no other; written by the copy thread
  std::atomic<bool> spoiled_{false};  // what another copy thread carried in it has failed it
  bool closed_ = false;

  GateWords words_;
  GateWord pad_word_;  // what pads write to
  PinnedProxy proxy_;
  Crossing crossing_;
  EarlyCrossing early_;
  LiveSpeculator* const ahead_;  // nullptr: nothing is sealed ahead for it

  // What is being carried; the copy thread's.
  Handed handed_;
  CopyThread* lender_ = nullptr;  // whose context it is carried in
  std::vector<HeldCopy*> copies_;
  std::vector<CrossingPart> parts_;
  std::vector<Ending> endings_;
  std::vector<EventKey> events_;
  std::vector<EventPool::LeasePointer> leases_;
  std::vector<CopyId> at_turn_;
  std::vector<Range> sources_;
  std::vector<StreamPointer> ended_;

  std::mutex carrying_;  // among callers that do the copy thread's work
  std::condition_variable asked_;
  // These under UnderWay's mutex.
  enum class Thread : uint8_t { none, ours, callers };
  Thread thread_ = Thread::none;
  bool closing_ = false;
  bool may_mend_ = false;   // asked for
  bool mends_now_ = false;  // without the mutex
  uint64_t wakes_ = 0;
  uint64_t wakes_seen_ = 0;  // when the copy thread last began to look for something that may go
};

}  // namespace sealane::serve
