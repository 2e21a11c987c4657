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

#include "base/bytes.h"
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
  SafetyRules rules{};
  bool coalesce = false;
  uint64_t batch_bytes_max = 64_KiB;
  size_t deferred_max = 512;  // calls of one stream
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
  // The device has written or read its memory; what it read is on its way to be opened.
  void handle_landed(StreamKey stream, CopyKey copy, Direction direction);
  void handle_batch_landed();        // all copies of the last batch of small ones
  void handle_opened(CopyKey copy);  // to the host, after it landed: verified and in place
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
  };
  const Stats& stats() const { return stats_; }

 private:
  static constexpr size_t kOpeningsMax = 4096;

  enum class EntryKind : uint8_t { call, record, wait, copy };
  struct Entry {
    EntryKind kind = EntryKind::call;
    uint64_t call = 0;
    uint64_t sequence = 0;     // of the stream's calls, from 1
    EventKey event = 0;        // record
    StreamKey on_stream = 0;   // wait: the stream of the record it waits for,
    uint64_t on_sequence = 0;  // and its place there
    OrderedCopy copy{};
  };
  struct Stream {
    explicit Stream(size_t deferred_max) : deferred(deferred_max) {}
    Ring<Entry> deferred;
    uint64_t called = 0;                 // calls made
    uint64_t processed = 0;              // calls submitted or issued
    uint64_t submitted = 0;              // things in the device's stream: calls and gates
    uint64_t reached = 0;                // of those, done
    uint64_t watched = 0;                // highest count asked for
    uint64_t last_call = 0;              // `submitted` after the last thing that was not a gate
    std::vector<OrderedCopy> under_way;  // issued since then and not landed
  };
  struct Event {
    StreamKey stream = 0;
    uint64_t sequence = 0;   // 0: never recorded
    uint64_t submitted = 0;  // its place in the device's stream, 0: not there yet
  };
  // One stream that a synchronising call waits for.
  struct Wait {
    WaiterKey waiter = 0;
    StreamKey stream = 0;
    uint64_t sequence = 0;
    uint64_t submitted = 0;
    uint64_t openings = 0;
    enum class Stage : uint8_t { deferred, on_device, opening } stage = Stage::deferred;
  };
  struct Opening {
    CopyKey copy = 0;
    bool opened = false;
  };

  Stream& stream(StreamKey key);
  Event& event(EventKey key);
  void add(StreamKey key, Entry entry);
  bool step(StreamKey key);
  bool may_issue(const Stream& stream, const OrderedCopy& copy) const;
  void issue(StreamKey key, const OrderedCopy& copy);
  void submit(StreamKey key, const Entry& entry);
  void processed(StreamKey key, const Entry& entry);
  void watch(StreamKey key, uint64_t count);
  bool flush_small();
  void add_wait(WaiterKey waiter, StreamKey key, uint64_t sequence, uint64_t submitted);
  void settle_waits();
  bool settled(Wait& wait);
  bool waits(WaiterKey waiter) const;
  uint64_t openings_end() const { return openings_first_ + openings_.size(); }

  OrderOptions options_;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::vector<OrderedCopy> small_;  // may be issued, gathering; oldest first
  uint32_t batch_under_way_ = 0;    // copies of the batch that has not landed
  std::vector<Wait> waits_;
  Ring<Opening> openings_;       // copies to the host, in the order they landed
  uint64_t openings_first_ = 0;  // the number of the first: all before it are opened
  size_t deferred_ = 0;          // entries of all streams
  Ring<OrderAction> actions_;
  Stats stats_;
};

}  // namespace sealane
