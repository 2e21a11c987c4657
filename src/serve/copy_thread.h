// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A copy thread carries copies of one direction of one GPU: a thread with a context of its own. Its
// context has its own sealed channel and its own hardware queues. Which copies, when, and what
// becomes of them is the machine's to say (core/copy/copies.h); a copy thread does it with a
// driver:
//
//   1. look     which events are reached, whose sources are as they were?
//   2. carry    what the machine hands over, as one blocking call of the driver
//   3. end      wipe, deliver, fail a context, open the gate, give memory back; in its order
//
// The gate of a copy is a wait for a word of device memory that the copy thread sets behind the
// data from its own context; where stream memory operations are missing it is a host function that
// waits for the copy thread. Both are ordinary work of the stream: synchronising calls, events,
// queries, host functions and waits across streams mean what they always mean, and nothing is
// deferred or replayed in the host, so every call of the program returns its own error code.
//
// Memory: the copy thread asks for none. What it fills has room for the most there can be.
//
// Threads: wake() from any thread. The copy thread starts with the first copy and sleeps when
// there is none; while copies wait for work of the GPU it looks every kPoll.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/time.h"
#include "serve/ahead.h"
#include "serve/crossing.h"
#include "serve/gpu_driver.h"
#include "serve/pinned_proxy.h"
#include "serve/under_way.h"

namespace sealane::serve {

// Who carries, for those who watch.
struct Carrier {
  int device = 0;
  int lane = 0;  // its number
  Direction direction = Direction::to_device;
};

// What a copy thread has done by its owner, on the copy thread.
class CopyThreadOwner {
 public:
  // Registered memory: from the program's to ours, before it goes. False: it is gone.
  virtual bool fetch(const HeldCopy& copy) = 0;
  // And back, before the gate opens.
  virtual void deliver(const HeldCopy& copy) = 0;
  virtual void give_back(const HeldCopy& copy) = 0;
  // The machine knows of a context that has failed: every call of the program is to ask.
  virtual void tell_failure() = 0;
  // Returns when nothing that is in the context's streams can run any more.
  virtual void fail_context(ContextHandle context, uint64_t device_address) = 0;

 protected:
  ~CopyThreadOwner() = default;
};

struct CopyThreadOptions {
  CopyThreadId id = 0;
  Carrier carrier;
  Ahead* ahead = nullptr;  // outlives the copy thread
};

class CopyThread {
 public:
  // nullptr if the driver has no context for us.
  static std::unique_ptr<CopyThread> open(GpuDriver& driver, CopyThreadOwner& owner,
                                          UnderWay& under_way, const CopyThreadOptions& options);
  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;

  // Can this copy thread's context reach this device memory? Copies a byte of it to the host: the
  // code.
  Code probe(uint64_t device_address);

  bool take_word(GateWord& out);  // false: no device memory
  void give_word(const GateWord& word);

  // There is something for it among these. Returns when its thread knows; without one, when all of
  // it is done.
  void wake(std::span<const CopyId> copies);
  // Gives the context back; the thread ends. Nothing may be under way or asked for afterwards.
  void close();
  Ahead* ahead() { return ahead_; }

 private:
  using Lock = std::unique_lock<std::mutex>;  // of UnderWay
  using Handed = sealane::Crossing;

  CopyThread(GpuDriver& driver, CopyThreadOwner& owner, UnderWay& under_way,
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
  void tell_dropped(const HeldCopy& copy) const;
  bool prepare_together(Lock& lock);
  bool fetch_all();
  Code cross();
  Code carry_part(const HeldCopy& copy, uint64_t offset, uint64_t bytes);
  Code pad(uint64_t count);
  void tell_carried(const HeldCopy& copy, uint64_t offset, uint64_t bytes, Code code, Instant begin,
                    Instant end, size_t together) const;
  void replace_context();
  // 3.
  void end(Lock& lock, Code code);
  void perform(const Ending& ending);
  void open_gate(const OpenGate& gate);

  GpuDriver& driver_;
  CopyThreadOwner& owner_;
  UnderWay& under_way_;
  const CopyThreadId id_;
  const Carrier carrier_;
  CopyContext context_;  // the copy thread may replace a failed one
  Ahead* const ahead_;   // nullptr: nothing is sealed ahead for it
  PinnedProxy proxy_;
  GateWord pad_word_;  // what pads write to
  Crossing crossing_;

  // What is being carried; the copy thread's.
  Handed handed_;
  std::vector<HeldCopy*> copies_;
  std::vector<CrossingPart> parts_;
  std::vector<Ending> endings_;
  std::vector<EventKey> events_;
  std::vector<std::shared_ptr<const EventLease>> leases_;
  std::vector<CopyId> at_turn_;
  std::vector<Range> sources_;
  std::vector<StreamPointer> ended_;

  std::mutex carrying_;  // among callers that do the copy thread's work
  std::condition_variable asked_;
  // These under UnderWay's mutex.
  enum class Thread : uint8_t { none, ours, callers };
  Thread thread_ = Thread::none;
  bool closing_ = false;
  uint64_t wakes_ = 0;
  uint64_t wakes_seen_ = 0;  // when the copy thread last began to look for something that may go
  std::mutex words_mutex_;
  std::vector<GateWord> free_words_;
};

}  // namespace sealane::serve
