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
  std::mutex mutex;                  // one call at a time puts copies into it
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

struct UnderWay {
  explicit UnderWay(const CopiesOptions& options) : copies(options) {}

  std::mutex mutex;
  std::condition_variable changed;  // a copy is over
  Copies copies;
  std::unordered_map<CopyId, HeldCopy> held;
  std::unordered_map<EventKey, EventPool::LeasePointer> events;
  uint64_t legacy_epoch = 0;  // of the legacy stream's work, as far as the machine knows
  // The machine may know of a context that has failed: every call of the program is to ask. Without
  // the lock.
  std::atomic<bool> any_failed{false};
};

constexpr size_t kLeasesMax = 64;

// Events nobody asks for any more, with the lock held; they are to be let go without it. As many as
// `out` has room for: a copy thread must not need memory.
inline void take_forgotten(UnderWay& under_way, std::vector<EventPool::LeasePointer>& out) {
  while (out.size() < out.capacity()) {
    const auto event = under_way.copies.forgotten();
    if (!event) return;
    const auto lease = under_way.events.find(*event);
    if (lease == under_way.events.end()) continue;
    out.push_back(std::move(lease->second));
    under_way.events.erase(lease);
  }
}

}  // namespace sealane::serve
