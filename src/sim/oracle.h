// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The judge. It is told what the program called, what crossed the bus, what the device did and what
// the program was allowed to see, and keeps its own books about all of it: it never asks the core.
// The first broken rule is kept, the rest of the run does not matter.
//
//   iv-once            a position of a lane crosses the bus once under one key, and a record that
//                      was made for a message is gone before the message is sealed otherwise
//   iv-order           and in order: the device counts by itself
//   rotation           sealed under the key the device has
//   stale              carries the bytes the range held when the copy's turn came; of pageable
//                      memory, when it was requested
//   message-match      a message of the driver's own carries what the driver put into it
//   order              no call takes effect before what it must follow, and none reads what a call
//                      before it is still to write
//   sync               no synchronising call returns before what it covers is done
//   verify-before-use  nor before what came to the host is verified
//   run-behind-forgery    nothing of a context begins behind one of its copies that failed, and
//                         nothing at all once the driver has failed it
//   deliver-after-failure nor does anything reach the host
//   wipe               and what did unverified is gone before anybody goes on
//   capture            what is captured does not cross
//   freed-range        memory goes when no copy touches it, be it source or destination
//   budget             slots stay within the budget
//   unmapped           what is sealed ahead was allocated or copied before, and not freed since
//   deadlock           the program goes on
//   livelock           and in bounded time
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/time.h"
#include "core/copy.h"
#include "sim/memory.h"
#include "workload/operation.h"

namespace sealane::sim {

using CallId = uint32_t;
constexpr CallId kNoCall = UINT32_MAX;

class Oracle {
 public:
  Oracle(const Memory& memory, uint64_t slot_bytes_max)
      : memory_(memory), budget_(slot_bytes_max) {}

  // --- the program
  void describe(uint32_t stream, uint32_t context, workload::StreamKind kind);
  enum class CallKind : uint8_t { kernel, record, wait, copy };
  struct CopyFacts {
    Direction direction = Direction::to_device;
    Range host;
    uint64_t device = 0;
    bool stable_source = false;  // pinned: not touched from the copy's turn until it is done
    uint64_t batch = 0;          // copies of one call have no order; 0: it is a call of its own
  };
  CallId call(CallKind kind, uint32_t stream, CallId waits_for = kNoCall);
  CallId call_copy(uint32_t stream, const CopyFacts& facts);
  void program_writes(const Range& range);  // before the memory changes
  void allocates(const Range& range) { mapped_.write(range, kMapped); }
  void frees(const Range& range);
  // A synchronising call that covers `stream` up to `last` returns without an error.
  void sync_returns(CallId last);
  CallId last_call(uint32_t stream) const;

  // --- the device
  void reads(CallId call);  // early: it starts later
  void starts(CallId call);
  void completes(CallId call);
  bool complete(CallId call) const { return calls_[call].complete; }

  // --- the bus
  struct Sealed {
    uint32_t epoch = 0;
    uint64_t position = 0;
    uint64_t content = 0;
  };
  // A record is exposed at the lane's `position`. Pads have no record.
  void exposes(uint32_t lane, uint64_t position, const Sealed* record);
  // A message of the driver's own; `carried` is the copy whose bytes it was given, if any.
  void own_message(uint32_t lane, CallId carried);
  void slot_holds(uint32_t lane, uint32_t slot, const Sealed& record);
  void slot_wiped(uint32_t lane, uint32_t slot);
  void sealed_instead(uint32_t lane, uint32_t slot);  // of the record in the slot
  void rotates(uint32_t lane);
  void fails(uint32_t context) { failed_.insert(context); }   // the runtime knows
  void stops(uint32_t context) { stopped_.insert(context); }  // the driver has failed it
  uint64_t counter(uint32_t lane) { return lane_of(lane).next; }
  uint32_t epoch(uint32_t lane) { return lane_of(lane).epoch; }
  // The content a message of this copy must have; `bytes` of it from `offset`.
  void delivers(CallId copy, const Range& part, uint64_t content);

  // --- the host
  void opened(CallId copy);  // verified and in place
  // Bytes from the device reach memory, in a stream's order:
  void host_written(const Range& part) { disturb(part); }
  void carried_to_host(CallId call, const Range& part, bool verified);  // those of our copies
  void wiped(const Range& range);
  void gate_opens();
  void slots_hold(uint64_t bytes);
  void seals_ahead(const Range& range);

  void violate(const char* rule, std::string what);
  struct Broken {
    const char* rule;
    std::string what;
  };
  const std::optional<Broken>& broken() const { return broken_; }

 private:
  struct Call {
    CallKind kind{};
    uint32_t stream = 0;
    CallId before = kNoCall;     // in the same stream
    CallId waits_for = kNoCall;  // a record in another
    std::vector<CallId> also;    // the legacy stream's rule
    bool complete = false;
    bool opened = false;
    bool racy = false;  // the program changed a source it had promised not to touch
    CopyFacts copy;
    uint64_t whole = 0;              // fingerprint of the whole source at the request
    std::vector<uint64_t> contents;  // and of each message
  };
  struct Lane {
    uint64_t next = 0;
    uint32_t epoch = 0;
    std::map<uint32_t, Sealed> slots;
  };
  struct Stream {
    uint32_t context = 0;
    workload::StreamKind kind = workload::StreamKind::non_blocking;
    CallId last = kNoCall;
  };

  CallId add(Call call);
  void expect(Call& call);
  CallId unfinished_before(const Call& call) const;
  bool waits_beside(const Call& call) const;
  bool only_copies_before(const Call& call, CallId writer) const;
  bool has_failed(CallId call) const;
  bool has_stopped(CallId call) const;
  void disturb(const Range& range, CallId writer = kNoCall);
  static bool may_pass(const Call& later, const Call& earlier);
  void check_covered(CallId last);
  Lane& lane_of(uint32_t lane);

  static constexpr uint64_t kUnmapped = 0;  // what memory never written holds
  static constexpr uint64_t kMapped = 1;

  bool done(CallId id) const { return calls_[id].complete && calls_[id].opened; }

  const Memory& memory_;
  Memory mapped_;
  uint64_t budget_;
  std::vector<Call> calls_;
  std::vector<Stream> streams_;
  std::vector<CallId> sources_;  // copies to the device that are not complete
  std::vector<CallId> targets_;  // and to the host
  std::vector<bool> covered_;    // known to be done, with all before them
  std::vector<Lane> lanes_;
  std::vector<Range> unverified_;  // what the program must not find
  std::set<uint32_t> failed_;      // contexts
  std::set<uint32_t> stopped_;
  std::optional<Broken> broken_;
};

}  // namespace sealane::sim
