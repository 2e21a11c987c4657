// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The judge. It is told what the program called, what crossed the bus, what the device did and what
// the program was allowed to see, and keeps its own books about all of it: it never asks the core.
// The first broken rule is kept, the rest of the run does not matter.
//
//   iv-once            a position of a lane crosses the bus once under one key
//   iv-order           and in order: the device counts by itself
//   rotation           sealed under the key the device has
//   stale              carries the bytes the range held when the copy was requested
//   order              no call takes effect before what it must follow
//   sync               no synchronising call returns before what it covers is done
//   verify-before-use  nor before what came to the host is verified
//   budget             slots stay within the budget
//   unmapped           what is sealed ahead was allocated or copied before, and not freed since
//   failure            nothing crosses a lane after an error was seen
//   deadlock           the program goes on
//   livelock           and in bounded time
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/copy.h"
#include "sim/memory.h"

namespace sealane::sim {

using CallId = uint32_t;
constexpr CallId kNoCall = UINT32_MAX;

class Oracle {
 public:
  Oracle(const Memory& memory, uint64_t slot_bytes_max)
      : memory_(memory), budget_(slot_bytes_max) {}

  // --- the program
  enum class CallKind : uint8_t { kernel, record, wait, copy };
  struct CopyFacts {
    Direction direction = Direction::to_device;
    Range host;
    uint64_t device = 0;
    bool stable_source = false;  // pinned: the program must not touch it until the copy is done
  };
  CallId call(CallKind kind, uint32_t stream, CallId waits_for = kNoCall);
  CallId call_copy(uint32_t stream, const CopyFacts& facts);
  void program_writes(const Range& range);  // before the memory changes
  void allocates(const Range& range) { mapped_.write(range, kMapped); }
  void frees(const Range& range) { mapped_.write(range, kUnmapped); }
  // A synchronising call that covers `stream` up to `last` returns without an error.
  void sync_returns(CallId last);
  CallId last_call(uint32_t stream) const;

  // --- the device
  void starts(CallId call);
  void completes(CallId call);
  bool complete(CallId call) const { return calls_[call].complete; }

  // --- the bus
  struct Sealed {
    uint32_t epoch = 0;
    uint64_t position = 0;
    uint64_t content = 0;
  };
  // A record is exposed at the lane's `position`. Pads and messages of the driver have no record.
  void exposes(uint32_t lane, uint64_t position, const Sealed* record);
  void rotates(uint32_t lane);
  void lane_failed() { failed_ = true; }
  uint64_t counter(uint32_t lane) { return lane_of(lane).next; }
  uint32_t epoch(uint32_t lane) { return lane_of(lane).epoch; }
  // The content a message of this copy must have; `bytes` of it from `offset`.
  void delivers(CallId copy, const Range& part, uint64_t content);
  // Content of a coalesced message: call add_expected() for each of its copies, then compare.
  uint64_t expected_whole(CallId copy) const { return calls_[copy].whole; }

  // --- the host
  void opened(CallId copy);                              // verified and in place
  void host_written_by(CallId copy, const Range& part);  // an opened message reaches memory
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
  };

  CallId add(Call call);
  void expect(Call& call);
  bool may_pass(const Call& later, const Call& earlier) const;
  void check_covered(CallId last);
  Lane& lane_of(uint32_t lane);

  static constexpr uint64_t kUnmapped = 0;  // what memory never written holds
  static constexpr uint64_t kMapped = 1;

  const Memory& memory_;
  Memory mapped_;
  uint64_t budget_;
  std::vector<Call> calls_;
  std::vector<CallId> last_of_;  // by stream
  std::vector<CallId> sources_;  // copies to the device that are not complete
  std::vector<bool> covered_;    // known to be done, with all before them
  std::vector<Lane> lanes_;
  bool failed_ = false;
  std::optional<Broken> broken_;
};

}  // namespace sealane::sim
