// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The safety rules of the core, one name each. In a build with mutants (tests; never what ships)
// each can be turned off, so that the simulator proves that it would notice: `sealane sim --break
// RULE` must find the violation. In any other build they are constants, and the compiler removes
// what a mutant would do.
//
// Of the copy machine (core/copy/copies.h), in CUDA's words:
//   order       A copy is carried when everything that was in its stream before is done. An event
//               marks that place. CUDA: work of a stream takes effect in the order it was issued.
//   run         Copies with nothing between them share one event: a run. Any other work of the
//               stream ends it; so does its length, for the books' sake.
//   legacy      Work of the legacy default stream stands between the copies of every other stream,
//               and a copy of the legacy stream is a run of its own. CUDA: it waits for all
//               blocking streams, and they for it.
//   landing     In a run, a copy lands when all that were asked for before it have landed,
//               whatever memory they touch: a kernel that polls, a stream that waits for a word and
//               a host that looks at pinned memory can tell. Those of one call have no order. Until
//               then it is not carried, or crosses early, into memory of ours.
//   early-read  A copy that crosses early reads nothing that one before it is still to write.
//               Between the two are copies alone, for whose end nobody has waited: only who writes
//               what copies under way read, a race that CUDA leaves undefined, can tell it from
//               one that is read at its turn.
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
// Of what seals ahead (core/pipeline):
//   iv-once     Of two records for one message one is wiped before the other is made.
//   stale       A write to a guarded range voids what was sealed from it.
//   budget      Slots stay within the budget.
//   rotation    A slot answers under the key it was sealed with.
#pragma once

namespace sealane {

#ifdef SEALANE_MUTANTS
constexpr bool kMutants = true;
#define SEALANE_RULE(name) bool name = true
#else
constexpr bool kMutants = false;
#define SEALANE_RULE(name) static constexpr bool name = true
#endif

struct SafetyRules {
  // core/copy
  SEALANE_RULE(order);
  SEALANE_RULE(run);
  SEALANE_RULE(legacy);
  SEALANE_RULE(landing);
  SEALANE_RULE(early_read);
  SEALANE_RULE(gate);
  SEALANE_RULE(gate_order);
  SEALANE_RULE(snapshot);
  SEALANE_RULE(read_at_turn);
  SEALANE_RULE(verify_before_use);
  SEALANE_RULE(run_behind_forgery);
  SEALANE_RULE(fail_first);
  SEALANE_RULE(deliver_after_failure);
  SEALANE_RULE(wipe);
  SEALANE_RULE(message_match);
  SEALANE_RULE(capture);
  SEALANE_RULE(freed_range);
  SEALANE_RULE(stale_at_turn);
  SEALANE_RULE(unseen_writer);
  // core/pipeline
  SEALANE_RULE(iv_once);
  SEALANE_RULE(stale);
  SEALANE_RULE(budget);
  SEALANE_RULE(rotation);
};

#undef SEALANE_RULE

}  // namespace sealane
