// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The copies under way: the core's machine (core/copy/copies.h) behind its lock, and beside it what
// the machine cannot know of a copy: where its bytes are, and which handles of the driver its
// stream, its event and its gates have. Nothing is decided here.
//
// Threads: the program's and the copy threads'. Of UnderWay everything is under `mutex`; a HeldCopy
// that is being carried is its copy thread's until the machine was told that it has ended. Lock
// order: a stream's mutex, this one, a LiveSpeculator's.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/copy/copies.h"
#include "serve/gpu_driver.h"
#include "serve/program_memory.h"
#include "serve/stream_marks.h"

namespace sealane::serve {

// A stream of the program. It lives as long as copies of it are under way.
struct Stream {
  StreamKey key = 0;  // never used twice
  ContextHandle context = nullptr;
  int device = 0;
  bool legacy = false;
  std::atomic<bool> touched{false};  // something else went into it, of which nobody was told yet
  const std::atomic<uint32_t>* entering = nullptr;   // calls that may be putting something into it
  std::mutex mutex;                                  // one call at a time puts copies into it
  std::array<StreamGates, kThreadsPerDevice> gates;  // by the place of the copy thread
};
using StreamPointer = std::shared_ptr<Stream>;

struct HeldCopy {
  uint64_t id = 0;  // for those who watch
  StreamPointer stream;
  uint64_t device_address = 0;
  uint8_t* host = nullptr;  // where its bytes are, or go first
  uint64_t bytes = 0;
  bool staged = false;      // `host` is staging memory, to be given back
  bool drivers = false;     // `host` is memory pinned by the driver
  void* program = nullptr;  // registered: where the program has them
};
inline void give_back(ProgramMemory& memory, const HeldCopy& copy) {
  if (copy.staged && copy.host != nullptr) memory.give(copy.host);
}

// What the machine calls a context.
inline ContextKey key_of(ContextHandle context) { return reinterpret_cast<ContextKey>(context); }

constexpr size_t kLeasesMax = 64;

// Every copy the machine has under way is in `held`; every event it waits for is in `events`, or
// went with its context.
struct UnderWay {
  explicit UnderWay(const CopiesOptions& options) : copies(options) {}

  // --- with the lock held
  // What the machine cannot know of the copies it has just taken. False: there is no memory for it,
  // and as nothing of the call is in the stream yet, the machine forgets it.
  bool hold(CallPlan& plan, std::vector<HeldCopy>& call);
  // A step of the plan could not be done: what is not under way any more is given back.
  void refuse(CallPlan& plan, std::vector<HeldCopy>& out);
  // Events nobody asks for any more; they are to be let go without the lock. As many as `out` has
  // room for: a copy thread must not need memory.
  void take_forgotten(std::vector<EventPool::LeasePointer>& out);

  // --- without it
  void forget_stream(StreamKey stream);
  void forget_context(ContextHandle context);
  void drain(ContextHandle context);  // returns when nothing is under way in it
  // The same on this memory, but for this stream's; or after a moment. What holds the others may be
  // the caller's to end, who has put this stream behind them.
  void drain(const Range& range, StreamKey but);
  Code failure_of(ContextHandle context);
  bool may_run(ContextHandle context);

  std::mutex mutex;
  std::condition_variable changed;  // a copy is over
  Copies copies;
  std::unordered_map<CopyId, HeldCopy> held;
  std::unordered_map<EventKey, EventPool::LeasePointer> events;
  uint64_t legacy_epoch = 0;  // of the legacy stream's work, as far as the machine knows
  // The machine may know of a context that has failed: every call of the program is to ask. Without
  // the lock.
  std::atomic<bool> any_failed{false};

 private:
  template <typename Forget>
  void forget(const Forget& tell);
};

}  // namespace sealane::serve
