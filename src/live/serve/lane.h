// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A lane carries the copies of one direction of one GPU: a thread with a context of its own. Its
// context has its own sealed channel and its own hardware queues.
//
// How stream order is kept. A request puts two things into the program's stream: an event (what must
// be done before the copy may begin) and behind it a gate (what keeps the rest of the stream waiting
// for the copy). The gate is a wait for a word of device memory that the lane sets behind the data
// from its own context; where stream memory operations are missing it is a host function that waits
// for the lane. Both are ordinary work of the stream: synchronising calls, events, queries, host
// functions and waits across streams mean what they always mean, and nothing is deferred or replayed
// in the host, so every call of the program returns its own error code.
//
// Why no gate can deadlock. A gate that is being executed has everything before it in its stream
// done, its request's event among it; so its copy may be issued, and an issued copy needs no further
// work of any context of the program. The lane issues any copy that may be issued, not only the
// oldest. So a waiting gate always has a copy that can go, even if all streams share one queue.
//
// Copies of one stream with nothing between them need no event of their own: they go in the order in
// which they were asked for.
//
// Threads: ask() from any thread; requests of one stream by one thread at a time, as CUDA's rules for
// order demand. The lane's thread starts with the first request and sleeps when there is none.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "core/copy.h"
#include "live/serve/gpu_driver.h"

namespace sealane::serve {

// What a request waits for and who waits for it. Shared by the lane, by the stream's later copies and
// by a gate in the driver's hands.
struct Ticket {
  std::atomic<uint32_t> done{0};  // 1: carried, or given up
  void finish() {
    done.store(1, std::memory_order_release);
    done.notify_all();
  }
  bool finished() const { return done.load(std::memory_order_acquire) != 0; }
};

struct LaneRequest {
  uint64_t id = 0;
  uint64_t device_address = 0;
  void* host = nullptr;
  uint64_t bytes = 0;
  void* snapshot = nullptr;         // staging memory to give back; `host` points into it
  ContextHandle context = nullptr;  // of the program
  EventHandle after = nullptr;      // null: nothing to wait for, or `behind` says it
  std::shared_ptr<Ticket> behind;   // the copy before it in its stream, if nothing is between them
  std::shared_ptr<Ticket> ticket;
  uint64_t gate_word = 0;           // 0: the gate is a host function that waits for the ticket
  uint32_t gate_value = 0;
};

}  // namespace sealane::serve
