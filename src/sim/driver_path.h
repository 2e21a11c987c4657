// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The driver's own path: what the machine does without Sealane, and with every copy that is passed.
// With CC on a copy blocks its caller until the stream has drained and the copy is done, one core
// seals, and the copies of a context take turns. With CC off, copies of pinned memory are the
// device's business.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/program_call.h"
#include "sim/world.h"

namespace sealane::sim {

class DriverPath {
 public:
  DriverPath(World& world, Threads& threads);

  Duration call(const ProgramCall& call);
  Duration copy(const ProgramCopy& copy, uint32_t context, uint32_t thread);
  bool blocks(const ProgramCopy& copy) const;
  void sync(uint32_t stream, uint64_t count, uint32_t thread);  // wakes when so much is done
  void sync_all(uint32_t context, uint32_t thread);
  uint64_t event_place(uint32_t event) const;  // things before it in its stream, and itself
  uint32_t event_stream(uint32_t event) const { return events_[event].stream; }

  void notify(uint32_t stream, uint64_t count);
  void copy_finished(uint32_t thread, CallId call);  // driver_free: CC on
  void copy_done(CallId call);                       // CC off

 private:
  struct Waiting {
    uint32_t stream;
    uint64_t count;
    uint32_t thread;
    CallId copy;  // kNoCall: a synchronising call
  };
  struct Copying {
    ProgramCopy copy;
    uint32_t context = 0;
  };
  struct Recorded {
    uint32_t stream = 0;
    uint64_t place = 0;
  };

  bool drains() const;  // a copy waits for all before it, and its caller for the copy
  Instant handed_over(ItemKind kind) const;
  void start(CallId call, uint32_t thread);
  bool in_cache(const Range& host);
  void arrive(const ProgramCopy& copy);
  void wait(const Waiting& waiting);

  World& world_;
  Threads& threads_;
  Platform platform_;                       // with the engine the policy says
  Platform cold_;                           // the same, where the host's bytes are not in cache
  std::map<uint64_t, uint64_t> copied_at_;  // host address to bytes copied before
  uint64_t copied_ = 0;
  std::vector<Copying> copies_;  // by call
  struct Channel {               // of a context, whose copies take turns
    Instant free{};
    uint64_t key_bytes = 0;
  };
  std::vector<Channel> channels_;  // by context
  std::vector<Recorded> events_;
  std::vector<Waiting> waiting_;
};

}  // namespace sealane::sim
