// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the copy machine asks whoever drives it to do. Plain values, done in the order they are
// given.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/copy/copy_call.h"
#include "core/copy/copy_threads.h"

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
struct Deliver {  // from memory of ours to where it belongs: at_turn, to the host; or early
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

}  // namespace sealane
