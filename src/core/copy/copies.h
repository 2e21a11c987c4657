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
// The rules, by the names under which the simulator breaks them:
//   order       A copy is carried when everything that was in its stream before is done. An event
//               marks that place. CUDA: work of a stream takes effect in the order it was issued.
//   run         Copies with nothing between them share one event: a run. Any other work of the
//               stream ends it; so does its length, for the books' sake.
//   legacy      Work of the legacy default stream stands between the copies of every other stream,
//               and a copy of the legacy stream is a run of its own. CUDA: it waits for all
//               blocking streams, and they for it.
//   hazard      In a run, a copy that touches what another one writes waits until that has ended.
//   gate        Behind the copies of a call the stream waits for each thread that has one of them,
//               so launches, events, host functions and synchronising calls behind it mean what
//               they always mean. A gate that is reached has everything before it done, so its
//               copy may go, and a copy that goes needs no further work of any stream: no gate can
//               deadlock, even if all streams share one hardware queue.
//   gate-order  A thread has one word per stream, which only grows and opens every gate up to its
//               value. So the copies that one thread has of one stream end in the order they were
//               asked for.
//   snapshot    A pageable source, or one to be read during the call, is copied inside the call.
//   read-at-turn  Any other source is read, and every destination written, after the copy's turn
//               has come and before its gate opens. Registered memory may vanish before: it is
//               reached by calls that cannot fault, through memory of ours.
//   verify-before-use  A gate opens when the bytes are in place and every message has verified.
//   run-behind-forgery  A copy that failed fails its context first; the gate opens afterwards, so
//               that whoever waits there finds the error. Host functions ask may_run().
//   fail-first  No gate of a context that has failed opens before the driver has failed it too: of
//               two threads that carry for it, the one that finds nothing to do any more may be
//               quicker than the one that makes it fail.
//   deliver-after-failure  In a context that has failed nothing is carried and nothing delivered. A
//               context also fails with the work that a copy waits behind.
//   wipe        What reached a destination unverified, or while its context failed, is wiped before
//               the gate opens.
//   message-match  What was sealed ahead answers a message of the driver only if that is the
//               copy's next one, by the place it names or by its bytes (message_match.h).
//   stale-at-turn  What was sealed ahead from a source that is read in place is compared with it
//               when the copy's turn has come, of a snapshot when that is taken: no list of calls
//               says who may have written meanwhile.
//   unseen-writer  From memory that others than the CPU can write nothing is sealed ahead: no guard
//               would know.
//   capture     While any stream is being captured nothing is carried.
//   freed-range Memory, of either side, goes when no copy under way touches it.
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

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/copy/copy_call.h"
#include "core/copy/copy_threads.h"
#include "core/copy/failures.h"
#include "core/copy/gathering.h"
#include "core/copy/speculation.h"
#include "core/copy/stream_runs.h"
#include "core/rules.h"

namespace sealane {

// --- steps: inside the program's call, in this order; handle_refused() if one cannot be done
struct TakeSnapshot {
  CopyId copy;
};
struct RecordEvent {
  StreamKey stream;
  EventKey event;
};
struct PutGate {
  StreamKey stream;
  CopyThreadId thread;
  uint32_t value;
};
using CallStep = std::variant<TakeSnapshot, RecordEvent, PutGate>;

// Why a copy is not carried: the driver does it as if we were not there.
enum class CopyVerdict : uint8_t {
  carried,
  passed,           // asynchrony is switched off, a step could not be done, or no memory was left
  passed_capture,   // some stream is being captured
  passed_pageable,  // to pageable memory: CUDA promises to wait there
  passed_aside,     // there is no thread for it
  refused,          // its context has failed: the call returns the error
};

struct CallPlan {
  CopyVerdict verdict = CopyVerdict::passed;
  std::vector<CopyId> copies;  // of the call, in its order
  std::vector<CallStep> steps;
  size_t done = 0;  // steps, for handle_refused()
};

// --- endings: on the copy thread, in this order
struct Wipe {  // a destination that must not be seen
  CopyId copy;
};
struct Deliver {  // at_turn, to the host: from memory of ours to where it belongs
  CopyId copy;
};
struct FailContext {  // returns when nothing behind the copy can run any more
  ContextKey context;
  ErrorCode code;
};
struct OpenGate {
  StreamKey stream;
  CopyThreadId thread;
  uint32_t value;
};
struct GiveBack {  // its snapshot or other memory of ours
  CopyId copy;
};
using Ending = std::variant<Wipe, Deliver, FailContext, OpenGate, GiveBack>;

struct CopiesOptions {
  SafetyRules rules{};
  CopyThreadLimits threads{};
  bool async = true;
  uint64_t bulk_bytes_min = 128_KiB;     // with threads for bulk: what travels on them
  std::optional<CrossingCosts> costs{};  // nothing: every copy travels alone
};

class Copies {
 public:
  explicit Copies(const CopiesOptions& options);

  // --- the program's calls
  // A thread that should be there for this copy and is not. Open it, tell, and ask again.
  std::optional<CopyThreadId> missing_thread(const CopyCall& call) const;
  // A bulk thread comes with what seals ahead for it, which outlives the copies.
  void handle_thread(CopyThreadId thread, bool opened, Speculation* ahead = nullptr) {
    threads_.handle_opened(thread, opened, ahead);
  }
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
  void handle_context_gone(ContextKey context);
  // No thread gets anything more: they go, and may be had again when the program has given a
  // context back.
  void handle_threads_gone() { threads_.handle_gone(); }
  void handle_freed(const Range& range, Instant now);  // may go when !busy(range)
  bool busy(const Range& host_or_device) const;
  bool touched(const Range& host_or_device) const;  // by a copy under way
  // When the bytes of a copy would be read or written; nothing: it is not to be carried.
  std::optional<HostSide> host_side(const CopyCall& call) const;

  // --- copy threads
  static constexpr size_t kToldMax = 64;  // at once, of events and of copies whose turn has come
  static constexpr size_t kEndingsMax = 4 * CopyList::kMax;
  // Events that copies of this thread wait for, in the order of the copies.
  void awaited(CopyThreadId thread, std::vector<EventKey>& out) const;
  // `code`: what came of the work it marks the end of.
  void handle_reached(EventKey event, ErrorCode code = 0);
  // An event nobody will ask for any more. Each is told once.
  std::optional<EventKey> forgotten() { return streams_.take_gone(); }
  // Copies whose turn has come, whose source is read in place, and for which something may have
  // been sealed ahead: look at their guards before take(). Each is told once.
  void at_turn(CopyThreadId thread, std::vector<CopyId>& out);
  // nullptr: nothing may go. Valid until handle_ended(). What was dropped is not handed over:
  // handle_crossed() at once.
  const Crossing* take(CopyThreadId thread, Instant now);
  // Of several that were taken only the first can go, alone; the others wait on.
  const Crossing* take_alone(CopyThreadId thread);
  void handle_crossed(CopyThreadId thread, ErrorCode code, std::vector<Ending>& out);
  // Delivering takes its time, and the context may have failed meanwhile. Nothing: that was all.
  void handle_delivered(CopyThreadId thread, std::vector<Ending>& out);
  void handle_ended(CopyThreadId thread, Instant now);

  // --- failure
  void handle_failed(ContextKey context, ErrorCode code) { failures_.fail(context, code); }
  ErrorCode failure_of(ContextKey context) const { return failures_.of(context); }
  bool any_failed() const { return failures_.any(); }
  bool may_run(ContextKey context) const;

  const CopyCall& call_of(CopyId copy) const { return under_way_.at(copy).call; }
  HostSide side_of(CopyId copy) const { return under_way_.at(copy).side; }
  CopyThreadId thread_of(CopyId copy) const { return under_way_.at(copy).thread; }
  bool under_way(CopyId copy) const { return under_way_.contains(copy); }
  bool idle() const { return under_way_.empty(); }
  bool idle(ContextKey context) const;  // as far as its copies go
  const CopyThreads& threads() const { return threads_; }
  const CopiesOptions& options() const { return options_; }
  StreamRuns& streams() { return streams_; }

  struct Stats {
    uint64_t carried = 0;
    uint64_t crossings = 0;
    uint64_t together = 0;  // copies that went with one before
  };
  const Stats& stats() const { return stats_; }

 private:
  struct Carried {
    CopyCall call;
    HostSide side = HostSide::in_place;
    CopyThreadId thread = 0;
    EventKey after = 0;
    std::vector<CopyId> behind;
    uint32_t gate = 0;             // 0: another copy of the call has it
    bool put = false;              // all that its call puts into the stream is there
    bool looked = false;           // its guards were looked at, when its turn had come
    bool told = false;             // bulk: its turn is known behind the door
    uint64_t crossed = 0;          // bytes handed over, by turns
    Speculation* ahead = nullptr;  // knows of it
  };

  CopyVerdict choose(std::span<const CopyCall> calls, std::vector<CopyThreadId>& threads);
  bool may_be_sealed_ahead(const CopyCall& call) const;
  bool is_bulk(const CopyCall& call) const;
  void add_all(std::span<const CopyCall> calls, const std::vector<CopyThreadId>& threads,
               CallPlan& plan, Instant now);
  void add(const CopyCall& call, CopyThreadId thread, CallPlan& plan, Instant now);
  std::vector<CopyId> find_behind(const CopyCall& call, CopyThreadId thread,
                                  const CallPlan& plan) const;
  void claim(CopyId id, Instant now);
  void put_gates(StreamKey stream, CallPlan& plan);
  void withdraw(CopyId id, Instant now);
  bool may_go(const Carried& copy) const;
  bool landed(CopyId copy) const { return !under_way_.contains(copy); }
  const Crossing* take_dropped(CopyThread& thread);
  const Crossing* take_turn(CopyThread& thread, Instant now);
  const Crossing* take_first(CopyThread& thread);
  void gather(CopyThread& thread, size_t first);
  bool begin_delivery(Crossing& crossing, std::vector<Ending>& out);
  void end_all(Crossing& crossing, ErrorCode code, std::vector<Ending>& out);
  void end_failed(CopyId id, Crossing& crossing, ErrorCode code, std::vector<Ending>& out);
  void end_landed(CopyId id, std::vector<Ending>& out);
  void open_gate(CopyId id, std::vector<Ending>& out);
  void remove(CopyId id);

  const CopiesOptions options_;
  CopyThreads threads_;
  StreamRuns streams_;
  Failures failures_;
  std::unordered_map<CopyId, Carried> under_way_;
  CopyId last_id_ = kNoCopy;
  int captures_ = 0;
  Stats stats_;
};

}  // namespace sealane
