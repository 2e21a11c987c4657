// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The copy machine: decides for every asynchronous copy between host and device who carries it,
// when, and what becomes of it. Whoever drives it (threads and a driver, or virtual time) tells it
// what happens and does what it says; nothing about order, memory or failure is decided elsewhere.
//
//   1. handle_copies   the program's call   carried or passed? -> steps, done inside the call:
//                                           TakeSnapshot, RecordEvent, PutGate
//      handle_put      the same             they are done: the copies may go
//   2. handle_work     the program's call   something else goes into a stream
//   3. handle_reached  a copy thread        what an event marks is done, or has failed
//   4. take            a copy thread        what it hands to the driver now
//   5. handle_crossed  a copy thread        how that went -> endings, done in this order:
//                                           Deliver, or: Wipe, FailContext, OpenGate, GiveBack
//      handle_delivered  the same           they are done -> the others, behind a Deliver
//      handle_ended    the same             they are done: others may follow
//
// A copy thread has a context of its own, with channels and hardware queues of its own. What it is
// given it hands to the driver in one blocking call, a crossing.
//
// Copies of a stream land one after the other, but while one crosses the next one may cross early:
// into memory of the copy thread's, on the side where it goes. Its thread tells that it has crossed
// when may_land() says so, and then delivers it, which takes no toll. Nobody waits in a circle: an
// early crossing waits only for crossings that had begun before it.
//
// Its rules, in CUDA's words, are in core/rules.h, by the names under which the simulator breaks
// them.
//
// Memory runs out in handle_copies() or never: a call for whose books there is none is passed and
// leaves no trace, and whatever comes later allocates nothing (what seals ahead apart, which gives
// up instead). So no thread of ours ends for want of memory, and no gate stays shut.
//
// Small copies of a run that wait for the same thread travel as one crossing where that costs less
// (gathering.h). Nobody waits for company. Of a batch, all copies are carried or none.
//
// Pure: no threads, no clock, no I/O; not synchronised. Whoever drives it with threads holds one
// lock around each call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/copy/bulk_turns.h"
#include "core/copy/copy_actions.h"
#include "core/copy/copy_call.h"
#include "core/copy/copy_table.h"
#include "core/copy/copy_threads.h"
#include "core/copy/failures.h"
#include "core/copy/gathering.h"
#include "core/copy/speculation.h"
#include "core/copy/stream_runs.h"
#include "core/rules.h"

namespace sealane {

class Copies {
 public:
  explicit Copies(const CopiesOptions& options);
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  // --- the program's calls
  // A thread that should be there for this copy and is not. Open it, tell, and ask again. One that
  // is there is broken, and may find room for another context now.
  std::optional<CopyThreadId> missing_thread(const CopyCall& call) const;
  // A bulk thread comes with what seals ahead for it, which outlives the copies.
  void handle_thread(CopyThreadId thread, bool opened, Speculation* ahead = nullptr) {
    handle_thread(thread, opened, ahead, threads_.rooms());
  }
  // `rooms`: threads().rooms() from before a context was looked for.
  void handle_thread(CopyThreadId thread, bool opened, Speculation* ahead, uint64_t rooms) {
    threads_.handle_opened(thread, opened, ahead, rooms);
  }
  // Its context has failed, and there was no room for another; or it has one again.
  void handle_broken(CopyThreadId thread, uint64_t rooms) { threads_.handle_broken(thread, rooms); }
  void handle_mended(CopyThreadId thread) { threads_.handle_mended(thread); }
  // Copies of one stream among which there is no order. `plan` is filled anew.
  void handle_copies(std::span<const CopyCall> calls, CallPlan& plan, Instant now);
  // Its steps are done. Until then nothing of it goes.
  void handle_put(const CallPlan& plan);
  // Step `plan.done` could not be done. What has no gate yet is passed; true: some of the call is
  // carried nevertheless, and may be carried by the driver once more.
  bool handle_refused(CallPlan& plan, Instant now);
  void handle_work(StreamKey stream, bool legacy) { streams_.handle_work(stream, legacy); }
  void handle_capture(bool begins) { captures_ += begins ? 1 : -1; }
  void handle_stream_gone(StreamKey stream) { streams_.forget(stream); }
  void handle_context_gone(ContextKey context);  // its streams were told of
  // No thread that is there gets anything more. Each goes when it has nothing to do, and may be had
  // again when the program has given a context back; or it stays after all.
  void handle_leaving() { threads_.handle_leaving(); }
  void handle_left(CopyThreadId thread, bool gone) { threads_.handle_left(thread, gone); }
  void handle_freed(const Range& range) {  // may go when !busy(range)
    threads_.each_ahead([&](Speculation& ahead) { ahead.handle_freed(range); });
  }
  bool busy(const Range& host_or_device) const;
  bool touched(const Range& host_or_device) const { return under_way_.touches(host_or_device); }
  // By copies of other streams than this one.
  bool touched(const Range& host_or_device, StreamKey but) const {
    return under_way_.touches(host_or_device, but);
  }

  // --- copy threads
  static constexpr size_t kToldMax = kCopiesToldMax;
  static constexpr size_t kEndingsMax = 4 * CopyList::kMax;
  // Events that copies of this thread wait for: of each stream the first. At most kToldMax, and
  // others the next time.
  void awaited(CopyThreadId thread, std::vector<EventKey>& out) {
    under_way_.find_awaited(threads_[thread], out);
  }
  // `code`: what came of the work it marks the end of.
  void handle_reached(EventKey event, ErrorCode code = 0);
  // An event nobody will ask for any more. Each is told once.
  std::optional<EventKey> forgotten() { return streams_.take_gone(); }
  // Copies whose turn has come, whose source is read in place, and for which something may have
  // been sealed ahead: look at their guards before take(). Each is told once.
  void at_turn(CopyThreadId thread, std::vector<CopyId>& out) { turns_.at_turn(thread, out); }
  // nullptr: nothing may go. Valid until handle_ended(). What was dropped is not handed over:
  // handle_crossed() at once.
  const Crossing* take(CopyThreadId thread, Instant now);
  // Of several that were taken only the first can go, alone; the others wait on.
  const Crossing* take_alone(CopyThreadId thread);
  // What it took early: has all landed that was asked for before? handle_crossed() when it has, or
  // at once if it went wrong.
  bool may_land(CopyThreadId thread) const;
  // It could not go early, and nothing will on this thread. After may_land(): it goes now.
  const Crossing* take_late(CopyThreadId thread);
  void handle_crossed(CopyThreadId thread, ErrorCode code, std::vector<Ending>& out);
  // Delivering takes its time, and the context may have failed meanwhile. Nothing: that was all.
  // `code`: what a delivery that went wrong fails its copy with.
  void handle_delivered(CopyThreadId thread, std::vector<Ending>& out, ErrorCode code = 0);
  void handle_ended(CopyThreadId thread, Instant now);

  // --- failure
  void handle_failed(ContextKey context, ErrorCode code) { failures_.fail(context, code); }
  ErrorCode failure_of(ContextKey context) const { return failures_.of(context); }
  bool any_failed() const { return failures_.any(); }
  bool may_run(ContextKey context) const {
    return !failures_.failed(context) || !options_.rules.run_behind_forgery;
  }

  const CopyCall& call_of(CopyId copy) const { return under_way_[copy].call; }
  HostSide side_of(CopyId copy) const { return under_way_[copy].side; }
  CopyThreadId thread_of(CopyId copy) const { return under_way_[copy].thread; }
  bool under_way(CopyId copy) const { return under_way_.contains(copy); }
  bool idle() const { return under_way_.empty(); }
  bool idle(ContextKey context) const { return !under_way_.any_of(context); }
  const CopyThreads& threads() const { return threads_; }
  const CopiesOptions& options() const { return options_; }
  StreamRuns& streams() { return streams_; }

  uint64_t together() const { return together_; }  // copies that went with one before

 private:
  CopyVerdict choose(std::span<const CopyCall> calls, std::vector<CopyThreadId>& threads);
  void add_all(std::span<const CopyCall> calls, const std::vector<CopyThreadId>& threads,
               CallPlan& plan, Instant now);
  void add(const CopyCall& call, CopyThreadId thread, CallPlan& plan, Instant now);
  CopyId last_of(CopyThreadId thread, const CallPlan& plan) const;
  void put_gates(StreamKey stream, CallPlan& plan);
  void withdraw(CopyId id, Instant now);
  const Crossing* take_dropped(CopyThread& thread);
  const Crossing* take_first(CopyThread& thread);
  const Crossing* take_early(CopyThreadId thread);
  bool allows_early(const CopyCall& call) const;
  bool worth_another_thread(const CopyCall& call) const;
  bool begin_delivery(Crossing& crossing, std::vector<Ending>& out);
  void end_all(Crossing& crossing, ErrorCode code, std::vector<Ending>& out);
  bool was_written(const Crossing& crossing, CopyId id, ErrorCode code) const;
  void end_failed(CopyId id, Crossing& crossing, ErrorCode code, std::vector<Ending>& out);
  void end_landed(CopyId id, std::vector<Ending>& out);
  void open_gate(CopyId id, std::vector<Ending>& out);
  void remove(CopyId id);

  const CopiesOptions options_;
  CopyThreads threads_;
  StreamRuns streams_;
  Failures failures_;
  CopyTable under_way_;
  BulkTurns turns_;
  CopyId last_id_ = kNoCopy;
  int captures_ = 0;
  uint64_t together_ = 0;
};

}  // namespace sealane
