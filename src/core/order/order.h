// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// When may a copy be issued, who waits for it, and what does each synchronising call wait for.
// Keeps CUDA's promises for streams whose copies travel elsewhere. Use: handle_*() as the program
// calls and as the device reports, then poll() until it returns nothing.
//
// A stream is a queue of calls. What the device may have at once is submitted at once. A carried
// copy is issued when everything before it in its stream is done; what the program puts behind it
// is deferred in the host until then, and then submitted behind a gate, which waits for the copy on
// the device.
//
// Why no gate can deadlock: a gate is submitted only when its copy has been issued, and an issued
// copy needs no further work of any stream. So a wait in a hardware queue never stands in front of
// what would release it, even if there is one queue for all streams. What is deferred in the host
// depends only on calls made before it.
//
// Two copies of one stream with nothing between them may land in either order if neither touches
// what the other writes: nobody who follows CUDA's rules can tell.
//
// Pure: no threads, no clock, no I/O; not synchronised. Allocates when a stream, event or waiter is
// first seen, not in the steady state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/copy.h"
#include "core/ring.h"
#include "core/rules.h"

namespace sealane {

using StreamKey = uint32_t;  // small numbers, chosen by the driver; reused only when idle
using EventKey = uint32_t;
using WaiterKey = uint32_t;  // a thread
using CopyKey = uint64_t;    // chosen by the driver, unique

struct OrderedCopy {
  CopyKey key = 0;
  StreamKey stream = 0;
  Direction direction = Direction::to_device;
  Range host;
  uint64_t device = 0;
  bool small = false;  // may travel with others
};

// --- actions
// Hand this call to the device's stream.
struct Submit {
  StreamKey stream;
  uint64_t call;
};
// The copy waits for nothing any more. Small ones that wait together come as one.
struct Issue {
  static constexpr size_t kCopiesMax = 16;
  std::array<CopyKey, kCopiesMax> copies;
  uint32_t count;
};
// Put a wait for the copy into the device's stream.
struct Gate {
  StreamKey stream;
  CopyKey copy;
};
// Tell with handle_reached() when the device has done the first `count` things submitted to it
// (calls and gates).
struct Watch {
  StreamKey stream;
  uint64_t count;
};
// The synchronising call may return.
struct Wake {
  WaiterKey waiter;
};
using OrderAction = std::variant<Submit, Issue, Gate, Watch, Wake>;

struct OrderOptions {
  SafetyRules rules;
  bool coalesce = false;
  uint64_t batch_bytes_max = 64 << 10;
  uint32_t batches_under_way = 1;  // small copies gather while this many are on their way
  size_t deferred_max = 1024;      // calls of one stream
};

class Order {
 public:
  explicit Order(const OrderOptions& options);

  // --- the program's calls, in the order they are made; not for a stream that is full()
  void handle_call(StreamKey stream, uint64_t call);  // a launch, a copy the driver does itself
  void handle_copy(const OrderedCopy& copy);
  void handle_record(StreamKey stream, EventKey event, uint64_t call);
  void handle_wait(StreamKey stream, EventKey event, uint64_t call);
  void handle_sync_stream(StreamKey stream, WaiterKey waiter);
  void handle_sync_event(EventKey event, WaiterKey waiter);
  void handle_sync_all(WaiterKey waiter);

  // --- what happened
  void handle_reached(StreamKey stream, uint64_t count);
  void handle_landed(CopyKey copy);  // the device has written or read its memory
  void handle_opened(CopyKey copy);  // to the host: verified and in place
  void handle_failed();              // wakes everybody; the driver returns the error

  std::optional<OrderAction> poll();

  bool full(StreamKey stream) const;
  bool idle(StreamKey stream) const;  // nothing deferred, everything submitted is done
  // Would a synchronising call return at once? For queries; report what is reached before.
  bool done(StreamKey stream) const;
  bool event_done(EventKey event) const;

  struct Stats {
    uint64_t issued = 0;
    uint64_t batches = 0;
    uint64_t coalesced = 0;  // small copies that shared a crossing with an earlier one
    uint64_t deferred = 0;
  };
  const Stats& stats() const { return stats_; }

 private:
  enum class EntryKind : uint8_t { call, record, wait, copy };
  struct Entry {
    EntryKind kind = EntryKind::call;
    uint64_t call = 0;         // or the copy's index in copies_
    uint64_t sequence = 0;     // of the stream's calls
    StreamKey on_stream = 0;   // wait: the stream of the record it waits for,
    uint64_t on_sequence = 0;  // and its place there
  };
  struct Carried {
    OrderedCopy copy;
    bool landed = false;
  };
  struct Stream {
    explicit Stream(size_t deferred_max) : deferred(deferred_max) {}
    Ring<Entry> deferred;
    uint64_t called = 0;             // calls made
    uint64_t processed = 0;          // calls submitted or issued
    uint64_t submitted = 0;          // things in the device's stream: calls and gates
    uint64_t reached = 0;            // of those, done
    uint64_t watched = 0;            // highest count asked for
    uint64_t last_call = 0;          // `submitted` after the last thing that was not a gate
    std::vector<Carried> under_way;  // issued since then and not landed
  };
  struct Event {
    StreamKey stream = 0;
    uint64_t sequence = 0;   // 0: never recorded
    uint64_t submitted = 0;  // its place in the device's stream, 0: not yet there
  };
  // One stream a synchronising call waits for.
  struct Wait {
    WaiterKey waiter = 0;
    StreamKey stream = 0;
    uint64_t sequence = 0;
    uint64_t submitted = 0;  // 0: the call it waits for is still deferred
    uint64_t opened = 0;     // opens it waits for, once the device is done
    bool reached = false;
  };

  Stream& stream(StreamKey key);
  Event& event(EventKey key);
  void add(StreamKey key, Entry entry);
  void step_all();
  bool step(StreamKey key);
  bool may_issue(const Stream& stream, const OrderedCopy& copy) const;
  void issue(StreamKey key, const OrderedCopy& copy);
  void submit(StreamKey key, const Entry& entry);
  void watch(StreamKey key, uint64_t count);
  void flush_small();
  void add_wait(WaiterKey waiter, StreamKey stream, uint64_t sequence, uint64_t submitted);
  void settle_waits();
  bool opens_done(uint64_t through) const { return opened_through_ >= through; }

  OrderOptions options_;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::vector<OrderedCopy> deferred_copies_;  // slots for copies in deferred entries
  std::vector<uint32_t> deferred_copies_free_;
  std::vector<OrderedCopy> small_;  // eligible small copies, oldest first
  std::vector<CopyKey> small_under_way_;
  uint32_t batches_under_way_ = 0;
  std::vector<std::pair<CopyKey, uint32_t>> batch_of_;  // landed small copies end their batch
  std::vector<Wait> waits_;
  struct Opening {
    CopyKey copy;
    bool landed = false;
    bool opened = false;
  };
  std::vector<Opening> openings_;  // copies to the host, in the order they landed
  uint64_t openings_first_ = 0;    // number of the first of them
  uint64_t opened_through_ = 0;
  Ring<OrderAction> actions_;
  Stats stats_;
};

}  // namespace sealane
