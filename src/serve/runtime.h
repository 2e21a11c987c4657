// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The one entry of the transparent runtime. The preload says what the program asks for; the runtime
// says whether it took it over. Whatever it does not take over goes to the driver unchanged:
// passing is always right, only slower.
//
// What is carried, by whom, when, and what becomes of it is decided by the machine of
// core/copy/copies.h. It is told what happens, and what it says is done: inside the program's calls
// by copy_intake.h, on the copy threads by copy_thread.h. The runtime has these parts and nothing
// else.
//
// Failure: if something of ours fails (no context, no memory, no thread), copies under way are
// finished, and from then on everything passes. If a copy that was carried fails in the driver,
// that is the program's error: its context gets it, for every later call, as it would have without
// us.
//
// Threads: everything from any thread. Lock order: a stream's mutex, UnderWay's, a
// LiveSpeculator's.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "core/copy.h"
#include "os/worker_pool.h"
#include "serve/copy_crew.h"
#include "serve/copy_intake.h"
#include "serve/events.h"
#include "serve/gpu_driver.h"
#include "serve/options.h"
#include "serve/process.h"
#include "serve/program_memory.h"
#include "serve/program_streams.h"
#include "serve/speculation.h"
#include "serve/under_way.h"

namespace sealane::serve {

class Runtime {
 public:
  // Called once, when the driver is up and CC mode is on.
  static void start(GpuDriver& driver);
  // nullptr: not started, or stepped aside. One load.
  static Runtime* get() { return process().runtime.load(std::memory_order_acquire); }
  // After fork, in the child: nothing of ours lives there.
  static void abandon() {
    if (Runtime* const runtime = process().runtime.exchange(nullptr)) runtime->crew_.abandon();
  }

  // An asynchronous copy. carried: it is ours and the call has succeeded; else pass it on, unless
  // its context has failed.
  Route copy(const CopyAsked& asked) { return copy_together({&asked, 1}); }
  // Copies of one stream among which there is no order: all are carried, or all are to be passed.
  Route copy_together(std::span<const CopyAsked> batch) { return intake_.take(batch); }
  uint64_t next_copy() { return copies_numbered_.fetch_add(1) + 1; }
  // Around a call that puts something else into a stream.
  class Entering : public ProgramStreams::Entering {
   public:
    Entering(Runtime& runtime, StreamHandle stream)
        : ProgramStreams::Entering(runtime.streams_, stream) {}
  };
  // Around the call of the driver's that destroys a stream; it says whether the stream is gone.
  template <typename Destroy>
  void destroy_stream(StreamHandle stream, Destroy&& destroy) {
    const ProgramStreams::Left left = leave_stream(stream);
    destroy() ? forget_stream(left) : stay(left);
  }
  // The program is about to destroy a context, and has then, or the driver has kept it. Its memory
  // goes with it: when leave_context() returns nothing of ours is under way on it, in whatever
  // context, and nothing more will be.
  struct LeftContext {
    ProgramMemory::OfContext memory;
    ProgramStreams::Left streams;
  };
  [[nodiscard]] LeftContext leave_context(ContextHandle context);
  void forget_context(ContextHandle context, const LeftContext& left);  // and all that was in it
  void stay_in_context(ContextHandle context, const LeftContext& left);
  void forget_context(ContextHandle context);         // that went and was not left before
  void set_capturing(StreamHandle stream, bool now);  // nothing is carried while any is
  bool any_capturing() const { return streams_.any_capturing(); }

  // The code every later call on a context must return: success, or the error of a carried copy.
  bool any_failed() const { return under_way_.any_failed.load(std::memory_order_relaxed); }
  Code failure_of(ContextHandle context) { return under_way_.failure_of(context); }
  // May a host function that was put into a stream of the context run?
  bool may_run(ContextHandle context) { return under_way_.may_run(context); }

  // Wait until nothing of ours is under way in this context, or on this memory. Nobody else is
  // waited for: what holds other streams may be the caller's to end.
  void drain(ContextHandle context) { under_way_.drain(context); }
  void drain(Range host_or_device) { crew_.drain(host_or_device); }
  // The same for memory of a device that goes when this stream comes to it: for copies of others,
  // and for a moment. A stream that waits for the others keeps the memory for them itself.
  void drain_others(const Range& device, StreamHandle stream);

  // Gives our contexts' places back: the program wants one. True if there was something to give.
  // They may be had again when the program has given one back.
  bool give_up_contexts() { return crew_.give_up(streams_); }
  uint64_t contexts_given() const { return crew_.given(); }

  // What the program has.
  RangeMap<DeviceBlock>& device_memory() { return memory_.device(); }
  RangeMap<HostBlock>& host_memory() { return memory_.host(); }
  void add_host_memory(const Range& range, const HostBlock& block);
  // Around a call of the driver's that frees what begins at an address: nobody finds it from now
  // on, `drain` waits for those who have found it, and if the call then fails (not kSuccess)
  // everything is as it was.
  template <typename Drain, typename Free>
  auto free_device_memory(uint64_t address, Drain&& drain, Free&& free) {
    return take_out_for(memory_.device(), address, drain, free);
  }
  template <typename Free>
  auto free_host_memory(uint64_t address, Free&& free) {
    const auto wait = [this](const Range& range) { drain(range); };
    return take_out_for(memory_.host(), address, wait, free);
  }
  WorkerPool& pool() { return pool_; }
  // Is pinned memory to be ours? It cannot be mapped then: only who was told so may have it.
  bool owns_pinned() const { return options().pinned; }
  const SpeculationChoice& speculation() const { return speculation_; }

 private:
  explicit Runtime(GpuDriver& driver);
  void tell_capture(bool begins);
  ProgramStreams::Left leave_stream(StreamHandle stream);
  ProgramStreams::Left leave_streams(ContextHandle context);
  void forget_stream(const ProgramStreams::Left& left);
  void stay(const ProgramStreams::Left& left);
  void put_back(const RangeMap<DeviceBlock>::Entry& block) {
    memory_.device().add(block.range, block.what);
  }
  void put_back(const RangeMap<HostBlock>::Entry& block) {
    add_host_memory(block.range, block.what);
  }
  template <typename Map, typename Drain, typename Free>
  auto take_out_for(Map& map, uint64_t address, Drain&& drain, Free&& free) {
    const auto gone = map.remove(address);
    if (gone) drain(gone->range);
    const auto result = free();
    if (gone && static_cast<Code>(result) != kSuccess) put_back(*gone);
    return result;
  }

  WorkerPool pool_;
  const SpeculationChoice speculation_;
  UnderWay under_way_;
  ProgramMemory memory_;
  ProgramStreams streams_;
  CopyCrew crew_;
  CopyIntake intake_;
  std::atomic<uint64_t> copies_numbered_{0};
};

}  // namespace sealane::serve
