// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The copies under way: the core's machine (core/copy/copies.h) behind its lock, and beside it what
// the machine cannot know of a copy: where its bytes are, and which handles of the driver its
// stream, its event and its gates have. Nothing is decided here.
//
// Threads: the program's and the copy threads'. Of UnderWay everything is under `mutex`; a HeldCopy
// that is being carried is its copy thread's until the machine was told that it has ended. Lock
// order: a stream's mutex, this one, an Ahead's.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/copy/copies.h"
#include "serve/gpu_driver.h"

namespace sealane::serve {

// A word of device memory that only ever grows; belongs to one stream at a time.
struct GateWord {
  uint64_t address = 0;
  uint32_t value = 0;  // the last one a gate waits for
};

// Opens a gate that is a host function.
class Ticket {
 public:
  void finish() {
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }
  void wait() const { done_.wait(0, std::memory_order_acquire); }

 private:
  std::atomic<uint32_t> done_{0};
};

class CopyThread;

// What one copy thread has of a stream's gates. The machine counts them from 1; the word, which
// others had before, goes on from where it was.
struct StreamGates {
  CopyThread* thread = nullptr;  // whose word it is
  GateWord word;
  uint32_t behind = 0;  // by so much the word is ahead of the machine's count
  std::deque<std::pair<uint32_t, std::shared_ptr<Ticket>>>
      tickets;  // under the stream's gates_mutex
};

// A stream of the program. It lives as long as copies of it are under way, and gives its words back
// then: nobody sets them any more.
struct Stream {
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  StreamKey key = 0;  // never used twice
  ContextHandle context = nullptr;
  int device = 0;
  bool legacy = false;
  std::atomic<bool> touched{false};  // something else went into it, of which nobody was told yet
  std::mutex mutex;                  // one call at a time puts copies into it
  std::mutex gates_mutex;
  std::array<StreamGates, kThreadsPerDevice> gates;
};
using StreamPointer = std::shared_ptr<Stream>;

// An event of the program's context, lent as long as somebody looks at it.
class EventLease {
 public:
  virtual ~EventLease() = default;
  EventHandle event = nullptr;
};

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

struct UnderWay {
  explicit UnderWay(const CopiesOptions& options) : copies(options) {}

  std::mutex mutex;
  std::condition_variable changed;  // a copy is over
  Copies copies;
  std::unordered_map<CopyId, HeldCopy> held;
  std::unordered_map<EventKey, std::shared_ptr<const EventLease>> events;
  uint64_t legacy_epoch = 0;  // of the legacy stream's work, as far as the machine knows
};

constexpr size_t kLeasesMax = 64;

// Events nobody asks for any more, with the lock held; they are to be let go without it. As many as
// `out` has room for: a copy thread must not need memory.
inline void take_forgotten(UnderWay& under_way,
                           std::vector<std::shared_ptr<const EventLease>>& out) {
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
