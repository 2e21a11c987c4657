// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What happens, for whoever watches: --observe, --stats, --trace and `sealane record` are sinks.
// The runtime reports every copy, every message at the EVP seam, every wait of a caller and every
// thing it could not do; it never asks a sink anything.
//
// A sink is called on the thread on which the thing happened, also on workers, lanes and threads of
// the driver, many at once: it must be thread-safe, must not block, allocate much, throw, call the
// driver or libcrypto, and must stay valid until the process is gone. Without a sink an event costs
// one load and one branch.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/time.h"
#include "core/copy.h"

namespace sealane::serve {

enum class EventKind : uint8_t {
  copy,     // a copy call of the program returned: [begin, end] is the time its caller was blocked
  carried,  // a lane carried a copy: [begin, end] on the lane's thread
  message,  // one AEAD message of the driver: [begin, end] on the driver's thread
  part,     // a worker's (or the caller's) share of a message
  sealed,   // a worker sealed a message before its turn: [begin, end]
  leader,   // another predictor leads the lane that seals ahead for `device`: `text`, "" for none
  slots,    // what that lane's slots hold now: bytes
  wait,     // a synchronising call of the program: [begin, end]
  call,     // any other stream-ordered call: a launch, a fill, an event
  memory,   // the program's pinned or registered memory: bytes, host
  key,      // a key was seen for the first time: a new channel, or a rotation
  note,     // something said in words: `text`
};

// How a copy travelled, or why it did not travel with us.
enum class Route : uint8_t {
  carried,           // by a lane, the caller went on
  passed,            // to the driver as it is: synchronous, or asynchrony is switched off
  passed_capture,    // the stream is being captured
  passed_shape,      // 2D, 3D, arrays, peers
  passed_memory,     // device memory that is not a plain allocation, or unknown
  passed_pageable,   // to pageable memory: CUDA promises to wait there
  passed_too_large,  // no room for a snapshot
  passed_aside,      // Sealane stepped aside
};

// Who did the AEAD work of a message.
enum class Answer : uint8_t {
  real,      // libcrypto
  engine,    // ours, one thread
  parallel,  // ours, several threads
  worker,    // ours, by a worker: asked for, but sealed before its turn came
  slot,      // sealed ahead: before it was asked for
};

// Which `call`, for those who follow the program's objects; a `wait` says what was waited for.
enum class Call : uint8_t {
  other,
  launch,       // id: names it for `launch_time`
  launch_time,  // bytes: nanoseconds of device time the launch `id` took, told later
  fill,
  device_copy,  // device_address: to, object: from
  host_function,
  record_event,  // object: the event, here and below
  wait_event,
  query_event,
  query_stream,
  create_context,  // context
  destroy_context,
  create_stream,  // stream, context; asynchronous: it does not wait for the legacy stream
  destroy_stream,
  create_event,
  destroy_event,
  allocate_device,  // device_address, bytes, context
  free_device,      // device_address
  allocate_host,    // host, bytes; pinned
  free_host,        // host
  start_profile,    // what the program measures begins
  stop_profile,     //   and ends
  sync_context,     // wait: context
  sync_stream,      // wait: stream
  sync_event,       // wait: object
};

struct Event {
  EventKind kind = EventKind::note;
  Call call = Call::other;  // call, wait
  Direction direction = Direction::to_device;
  Route route = Route::passed;   // copy
  Answer answer = Answer::real;  // message
  bool asynchronous = false;     // copy: as the program asked; sealed: nobody had asked yet
  bool pinned = false;           // copy: the host side, as the program sees it
  uint8_t device = 0;            // ordinal, if known
  uint16_t lane = 0;             // carried, leader, slots: its number among the device's
  int32_t code = 0;              // the driver's result
  uint64_t id = 0;               // of a copy; `carried` and `message` name the copy they serve
  uint64_t bytes = 0;
  uint64_t host = 0;  // address; message: the source (destination) the driver named
  uint64_t device_address = 0;
  uint64_t stream = 0;            // handle, as the program sees it
  uint64_t context = 0;           // handle of the stream's context, if known
  uint64_t object = 0;            // call, wait: see Call
  uint64_t key = 0;               // message, key: a number for the key, never the key
  uint8_t iv[12] = {};            // message
  uint16_t updates = 0;           // message: EVP updates it came in
  uint16_t additional_bytes = 0;  // message: additional data
  uint16_t together = 0;  // carried: copies of its crossing; 0: it went with one told before
  Instant begin{};
  Instant end{};
  const char* text = nullptr;  // note, call, leader: static
};

class EventSink {
 public:
  virtual void handle(const Event& event) noexcept = 0;
  // The process ends, or the runtime stepped aside: write what there is. May come more than once.
  virtual void finish() noexcept = 0;

 protected:
  ~EventSink() = default;
};

// All there are, of the process (process.h). At most a few, added before the first copy (the
// preload does that from SEALANE_* at its start).
class EventSinks {
 public:
  void add(EventSink& sink);
  void remove_all() { count_.store(0); }  // in the child of a fork: its parent's
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
  void report(const Event& event) const;
  void finish() const;

 private:
  static constexpr size_t kMax = 8;
  std::atomic<EventSink*> sinks_[kMax] = {};
  std::atomic<size_t> count_{0};
};

bool watched();  // is there a sink at all?
void report(const Event& event);

}  // namespace sealane::serve
