// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes a copy call of the program, from what it asks for to what is in its stream. Which memory
// and which stream it means is found out here; whether the copy is carried, and what has to stand
// in the stream for that, is the machine's to say (core/copy/copies.h).
//
// Failure: a copy that cannot be carried is passed, and nothing of it is left. If something of ours
// is broken (no memory, contexts of no use) one line says why, and from then on all are passed.
//
// Threads: the program's, any number; one call at a time puts copies into a stream. Lock order: a
// stream's mutex, UnderWay's.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "core/copy.h"
#include "serve/copy_crew.h"
#include "serve/events.h"
#include "serve/gpu_driver.h"
#include "serve/program_memory.h"
#include "serve/program_streams.h"
#include "serve/under_way.h"

namespace sealane::serve {

struct CopyAsked {
  Direction direction = Direction::to_device;
  uint64_t device_address = 0;
  void* host = nullptr;
  uint64_t bytes = 0;
  StreamHandle stream = nullptr;  // default streams by their names
  uint64_t id = 0;                // Runtime::next_copy(), if somebody watches
  bool read_now = false;          // nobody may look at the source after the call
};

class CopyIntake {
 public:
  CopyIntake(GpuDriver& driver, UnderWay& under_way, ProgramMemory& memory, ProgramStreams& streams,
             CopyCrew& crew)
      : driver_(driver),
        under_way_(under_way),
        memory_(memory),
        streams_(streams),
        crew_(crew),
        events_(driver) {}

  // Copies of one stream among which there is no order: all are carried, or all are to be passed.
  Route take(std::span<const CopyAsked> batch);
  // An event behind all that is in the stream now. nullptr: it could not be put there.
  EventPool::LeasePointer mark(ContextHandle context, StreamHandle stream);
  void leave_context(ContextHandle context) { events_.leave(context); }
  void stay_in_context(ContextHandle context) { events_.stay(context); }
  void forget_context(ContextHandle context) { events_.forget(context); }

 private:
  // A call under way: what it asks for, and where its bytes are.
  struct Call {
    std::span<const CopyAsked> asked;
    StreamPointer stream;
    std::vector<CopyCall> calls;
    std::vector<HeldCopy> held;
    CallPlan plan;
  };

  Route offer(Call& call);
  Route describe(Call& call);
  Route describe(const CopyAsked& asked, CopyCall& out, HeldCopy& held);
  Route take_memory(const CopyAsked& asked, CopyCall& out, HeldCopy& held);
  bool is_pageable(const Range& source);
  void give_back_all(const Call& call);
  void tell_touched(Stream& stream);
  Route put(Call& call);
  Code perform(const Call& call, const CallStep& step);
  Code record(const Call& call, const RecordEvent& record);
  void refuse(Call& call);
  void wake(const Call& call);
  void step_aside(const char* why);

  GpuDriver& driver_;
  UnderWay& under_way_;
  ProgramMemory& memory_;
  ProgramStreams& streams_;
  CopyCrew& crew_;
  EventPool events_;
  std::atomic<bool> memory_operations_{true};  // streams can wait for words
  std::atomic<bool> aside_{false};
};

}  // namespace sealane::serve
