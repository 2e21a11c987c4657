// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The one entry of the transparent runtime. The preload says what the program asks for; the runtime
// says whether it took it over. Whatever it does not take over goes to the driver unchanged:
// passing is always right, only slower.
//
// What is carried, by whom, when, and what becomes of it is decided by the machine of
// core/copy/copies.h. The runtime tells it what happens and does what it says: inside the program's
// calls here, on the copy threads in copy_thread.h.
//
// Failure: if something of ours fails (no context, no memory, no thread), copies under way are
// finished, one line says why, and from then on everything passes. If a copy that was carried fails
// in the driver, that is the program's error: its context gets it, for every later call, as it
// would have without us.
//
// Threads: everything from any thread. Lock order: a stream's mutex, UnderWay's, an Ahead's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/copy.h"
#include "os/worker_pool.h"
#include "serve/copy_thread.h"
#include "serve/events.h"
#include "serve/gpu_driver.h"
#include "serve/memory.h"
#include "serve/options.h"
#include "serve/speculation.h"
#include "serve/under_way.h"

namespace sealane::serve {

struct CopyAsked {
  Direction direction = Direction::to_device;
  uint64_t device_address = 0;
  void* host = nullptr;
  uint64_t bytes = 0;
  StreamHandle stream = nullptr;  // default streams by their names
  uint64_t id = 0;                // next_copy(), if somebody watches
  bool read_now = false;          // nobody may look at the source after the call
};

class Runtime final : private CopyThreadOwner {
 public:
  // Called once, when the driver is up and CC mode is on.
  static void start(GpuDriver& driver);
  // nullptr: not started, or stepped aside. One load.
  static Runtime* get() { return current_.load(std::memory_order_acquire); }
  // After fork, in the child: nothing of ours lives there.
  static void abandon() {
    Runtime* const runtime = current_.exchange(nullptr);
    if (runtime != nullptr && runtime->budget_) runtime->budget_->forget();
  }

  // An asynchronous copy. carried: it is ours and the call has succeeded; else pass it on, unless
  // its context has failed.
  Route copy(const CopyAsked& asked) { return copy_together({&asked, 1}); }
  // Copies of one stream among which there is no order: all are carried, or all are to be passed.
  Route copy_together(std::span<const CopyAsked> batch);
  uint64_t next_copy() { return copies_numbered_.fetch_add(1) + 1; }
  // Something else went into this stream.
  void touch(StreamHandle stream);
  // Around a call that puts something into a stream. It is noted when the call is back: before, a
  // copy that another thread asks for meanwhile would have the note to itself, and the next one of
  // this thread would not wait for what the call has put there.
  class Entering {
   public:
    Entering(Runtime& runtime, StreamHandle stream) : runtime_(runtime), stream_(stream) {}
    ~Entering() { runtime_.touch(stream_); }
    Entering(const Entering&) = delete;
    Entering& operator=(const Entering&) = delete;

   private:
    Runtime& runtime_;
    const StreamHandle stream_;
  };
  void forget_stream(StreamHandle stream);            // the program destroyed it
  void forget_context(ContextHandle context);         // and all that was in it
  void set_capturing(StreamHandle stream, bool now);  // nothing is carried while any is
  bool any_capturing() const { return captures_.load(std::memory_order_relaxed) != 0; }

  // The code every later call on a context must return: success, or the error of a carried copy.
  bool any_failed() const { return any_failed_.load(std::memory_order_relaxed); }
  Code failure_of(ContextHandle context);
  // May a host function that was put into a stream of the context run?
  bool may_run(ContextHandle context);

  // Wait until nothing of ours is under way: at all, in this context, or on this memory. Of other
  // contexts nobody is waited for: what holds their streams may be the caller's to end.
  void drain();
  void drain(ContextHandle context);
  void drain(Range host_or_device);

  // Gives our contexts' places back: the program wants one. True if there was something to give.
  // They may be had again when the program has given one back.
  bool give_up_contexts();

  // What the program has.
  RangeMap<DeviceBlock>& device_memory() { return device_memory_; }
  RangeMap<HostBlock>& host_memory() { return host_memory_; }
  void add_host_memory(const Range& range, const HostBlock& block);
  WorkerPool& pool() { return pool_; }
  // Is pinned memory to be ours? It cannot be mapped then: only who was told so may have it.
  bool owns_pinned() const { return options().pinned; }
  const SpeculationChoice& speculation() const { return speculation_; }

  void step_aside(const char* why);

 private:
  struct Lease;
  // A call under way: what it asks for, and where its bytes are.
  struct Call {
    std::span<const CopyAsked> asked;
    StreamPointer stream;
    std::vector<CopyCall> calls;
    std::vector<HeldCopy> held;
    CallPlan plan;
  };

  explicit Runtime(GpuDriver& driver);

  // --- a call of the program
  Route offer(Call& call);
  Route describe(Call& call);
  Route describe(const CopyAsked& asked, CopyCall& out, HeldCopy& held);
  Route take_memory(const CopyAsked& asked, CopyCall& out, HeldCopy& held);
  void give_back_all(const Call& call);
  void look_at_guards(const Call& call);
  void tell_touched(Stream& stream);
  Route put(Call& call);
  bool hold(Call& call);
  Code perform(const Call& call, const CallStep& step);
  Code record(const Call& call, const RecordEvent& record);
  Code put_gate(const Call& call, const PutGate& gate);
  void refuse(Call& call);
  void let_go(const Call& call);
  void wake(std::span<const CopyId> copies);
  void* snapshot(const void* from, uint64_t bytes);
  // Copies on all workers, with calls that cannot fault.
  bool move(bool (*how)(const void*, void*, uint64_t), const void* from, void* to, uint64_t bytes);

  // --- copy threads
  void open_missing(const CopyCall& call);
  std::unique_ptr<CopyThread> open_thread(const CopyThreadOptions& wanted, uint64_t reachable);
  CopyThread* thread_at(CopyThreadId id);
  Ahead* make_ahead(int device, int lane);
  std::vector<Ahead*> aheads();
  int next_number(int device);
  bool fetch(const HeldCopy& copy) override;
  void deliver(const HeldCopy& copy) override;
  void give_back(const HeldCopy& copy) override;
  void tell_failure() override { any_failed_.store(true); }
  void fail_context(ContextHandle context, uint64_t device_address) override;
  std::set<const CopyThread*> find_busy_threads();

  // --- streams and events
  uint64_t key_of(StreamHandle stream, ContextHandle context) const;
  StreamPointer stream(StreamHandle handle);        // nullptr: the driver does not know it
  StreamPointer known_stream(StreamHandle handle);  // only if it has had a carried copy
  std::shared_ptr<Lease> take_event(ContextHandle context);
  void give_event(ContextHandle context, EventHandle event);

  static std::atomic<Runtime*> current_;

  GpuDriver& driver_;
  WorkerPool pool_;
  Staging staging_;
  const SpeculationChoice speculation_;
  UnderWay under_way_;
  RangeMap<DeviceBlock> device_memory_;
  RangeMap<HostBlock> host_memory_;

  std::shared_mutex streams_mutex_;
  std::unordered_map<uint64_t, StreamPointer> streams_;
  std::atomic<StreamKey> streams_made_{0};
  std::atomic<uint64_t> legacy_epoch_{0};  // counts what went into the legacy stream
  std::mutex captures_mutex_;
  std::set<uint64_t> capturing_;
  std::atomic<size_t> captures_{0};
  std::atomic<bool> memory_operations_{true};
  std::atomic<uint64_t> copies_numbered_{0};

  std::shared_mutex carrying_;  // shared: a call is putting copies into a stream
  // These under UnderWay's mutex.
  std::vector<std::unique_ptr<CopyThread>> threads_;  // by id
  std::vector<std::unique_ptr<CopyThread>> retired_;  // closed; their threads may still be leaving
  std::vector<Ahead*> aheads_;  // never deleted: a message may still look at one
  // One copy thread is opened at a time; these under its mutex.
  std::mutex opening_;
  std::vector<int> lanes_opened_;       // of each device: their numbers
  std::unique_ptr<SlotBudget> budget_;  // of all slots
  std::atomic<bool> aside_{false};

  std::mutex events_mutex_;
  std::unordered_map<ContextHandle, std::vector<EventHandle>> events_;

  std::atomic<bool> any_failed_{false};  // as far as the machine knows
};

}  // namespace sealane::serve
