// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A lane carries the copies of one direction of one GPU: a thread with a context of its own. Its
// context has its own sealed channel and its own hardware queues.
//
// How stream order is kept. A request puts two things into the program's stream: an event (what
// must be done before the copy may begin) and behind it a gate (what keeps the rest of the stream
// waiting for the copy). The gate is a wait for a word of device memory that the lane sets behind
// the data from its own context; where stream memory operations are missing it is a host function
// that waits for the lane. Both are ordinary work of the stream: synchronising calls, events,
// queries, host functions and waits across streams mean what they always mean, and nothing is
// deferred or replayed in the host, so every call of the program returns its own error code.
//
// Why no gate can deadlock. A gate that is being executed has everything before it in its stream
// done, its request's event among it; so its copy may be issued, and an issued copy needs no
// further work of any context of the program. The lane issues any copy that may be issued, not only
// the oldest. So a waiting gate always has a copy that can go, even if all streams share one queue.
//
// Copies of one stream with nothing between them share an event and may land in any order, on
// several lanes at once, unless one touches what the other writes: nobody who follows CUDA's rules
// can tell.
//
// A large copy may travel over several contexts at once (stripes.h); it is over when all of it is.
//
// Small copies of such a run that wait for the lane travel as one crossing where that costs less
// (core/order/gathering.h, crossing.h). None waits for company: a lane takes what is there.
//
// Threads: ask() from any thread. The lane's thread starts with the first request and sleeps when
// there is none; while requests wait for work of the GPU it looks every kPoll.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/time.h"
#include "core/copy.h"
#include "live/serve/ahead.h"
#include "live/serve/crossing.h"
#include "live/serve/gpu_driver.h"
#include "live/serve/read_book.h"
#include "live/serve/stand_in.h"
#include "live/serve/stripes.h"

namespace sealane::serve {

// Tells when a request is over. Shared by the lane, by the stream's next copy and by a gate that is
// a host function.
class Ticket {
 public:
  void finish() {
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }
  bool finished() const { return done_.load(std::memory_order_acquire) != 0; }
  void wait() const { done_.wait(0, std::memory_order_acquire); }

 private:
  std::atomic<uint32_t> done_{0};
};

// A word of device memory that only ever grows; belongs to one stream at a time.
struct GateWord {
  uint64_t address = 0;
  uint32_t value = 0;  // the last one a gate waits for
};

// An event of the program's context, lent as long as somebody looks at it.
class EventLease {
 public:
  virtual ~EventLease() = default;
  EventHandle event = nullptr;
};

struct LaneRequest {
  uint64_t id = 0;
  uint64_t device_address = 0;
  void* host = nullptr;
  uint64_t bytes = 0;
  bool staged = false;              // `host` is staging memory, to be given back
  bool drivers = false;             // `host` is memory pinned by the driver
  void* fetch = nullptr;            // to device: staged bytes come from here when the copy may go
  void* deliver = nullptr;          // to host: staged bytes go here before the gate opens, or
  ReadId read = kNoRead;            //   later: `host` is memory of the DeferredReads'
  ContextHandle context = nullptr;  // of the program
  std::shared_ptr<const EventLease> after;
  std::vector<std::shared_ptr<Ticket>> behind;  // copies of the stream that must have landed
  std::shared_ptr<Ticket> ticket;
  uint64_t gate_word = 0;  // 0: the gate waits for the ticket
  uint32_t gate_value = 0;
  FlightId flight = kNone;     // its number with an Ahead: the lane's, or
  Ahead* observer = nullptr;   // to host: the one that must know when it is over
  bool told_ready = false;     // the Ahead knows that it may go
  bool over = false;           // only the list still has it
  uint64_t carried_bytes = 0;  // by turns
};

// What a lane tells its owner, on the lane's thread.
class LaneOwner {
 public:
  // The copy may go now. False: its source is gone.
  virtual bool departs(const LaneRequest& request) = 0;
  // The driver is done and the gate still closed.
  virtual void landed(const LaneRequest& request) = 0;
  // The same for a copy that failed: whoever waits at the gate must find the error.
  virtual void failed(const LaneRequest& request, Direction direction, Code code) = 0;
  // The request is over; its ticket is finished afterwards.
  virtual void carried(const LaneRequest& request, Code code) = 0;

 protected:
  ~LaneOwner() = default;
};

struct LaneOptions {
  Carrier carrier;
  Ahead* ahead = nullptr;  // decides whose turn it is; outlives the lane
  // The rest is for lanes without one, whose message counter nobody plans with.
  std::optional<CrossingCosts> costs{};  // small copies travel together as they say; none: alone
  unsigned stripes = 1;                  // contexts a large copy may travel over
};

class Lane {
 public:
  // nullptr if the driver has no context for us.
  static std::unique_ptr<Lane> open(GpuDriver& driver, LaneOwner& owner,
                                    const LaneOptions& options);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Can this lane's context reach this device memory? Copies a byte of it to the host: the code.
  Code probe(uint64_t device_address);

  bool take_word(GateWord& out);  // false: no device memory
  void give_word(const GateWord& word);

  void ask(LaneRequest request);
  void ask(std::vector<LaneRequest> requests);  // at once, in this order
  // Is anything under way that `concerns`?
  template <typename Predicate>
  bool any(Predicate&& concerns) {
    const std::lock_guard lock(mutex_);
    return std::any_of(requests_.begin(), requests_.end(), concerns);
  }
  // Waits until nothing is under way that `concerns`.
  template <typename Predicate>
  void drain(Predicate&& concerns) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      for (const LaneRequest& request : requests_) {
        if (concerns(request)) return false;
      }
      return true;
    });
  }
  // Gives the context back; the thread ends. Nothing may be under way or asked for afterwards.
  void close();
  Ahead* ahead() const { return ahead_; }
  Direction direction() const { return carrier_.direction; }
  size_t pending() const { return pending_.load(std::memory_order_acquire); }
  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }

 private:
  using Requests = std::list<LaneRequest>;

  Lane(GpuDriver& driver, LaneOwner& owner, const LaneOptions& options, LaneContext context);

  void work();
  void await_requests(std::unique_lock<std::mutex>& lock);
  bool may_go(const LaneRequest& request);
  // Carry some of the first `count` requests. How many are over; 0: none may go.
  size_t carry_first(Requests::iterator next, size_t count);
  size_t carry_by_turns(Requests::iterator first, size_t count);
  // The first, which may go, and those that wait behind it and travel with it.
  size_t carry_together(Requests::iterator first, size_t count);
  bool may_go_with(const LaneRequest& request) const;
  Code cross(const Gathering& group);
  void remove_finished(Requests::iterator next, size_t finished);
  Code move(const LaneRequest& request, uint64_t offset, uint64_t bytes);
  Code pad(uint64_t count);
  void carry(LaneRequest& request);
  void finish(LaneRequest& request, Code code);
  void replace_context(Code code);
  void open_gate(const LaneRequest& request);

  GpuDriver& driver_;
  LaneOwner& owner_;
  const Carrier carrier_;
  LaneContext context_;  // the lane's thread may replace a failed one
  Ahead* const ahead_;
  StandIn stand_in_;
  std::optional<Stripes> stripes_;
  GateWord pad_word_;  // what pads write to
  const std::optional<CrossingCosts> costs_;
  Crossing crossing_;
  std::vector<LaneRequest*> together_;  // what travels now
  std::vector<CrossingPart> parts_;

  std::mutex carrying_;  // among callers that do the lane's work
  std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable changed_;
  Requests requests_;  // only the lane's thread removes
  std::atomic<size_t> pending_{0};
  bool started_ = false;
  bool closing_ = false;
  std::vector<GateWord> free_words_;
};

}  // namespace sealane::serve
