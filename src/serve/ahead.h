// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Seals ahead: drives core/pipeline for one lane to the device. The core decides what to seal when,
// whose turn it is, and what to give up; this carries it out with real memory, guards and workers.
//
//   1. check_guards() at the copy's turn  the guards are looked at, a slot that fits is claimed
//      claim()        or in its call      (a copy of which there is a snapshot)
//   2. next()      the lane's thread      whose turn is it? -> the lane hands that to the driver
//   3. take()      the driver's thread    the driver seals a message: is its slot ready and right?
//      give()
//   4. jobs        the pool               seal ahead what the core asks for
//
// Nothing that was sealed early is published unless a guard says, when the stream has come to the
// copy, that its source is as it was. Who wrote it, and how, does not matter.
//
// A slot answers a message only if key and IV are those it was sealed with and the message is the
// copy's next one (core/copy/message_match.h). Whatever does not fit is sealed then and there: a
// wrong guess, or a wrong idea of the driver, costs time.
//
// How long messages are is learnt from the driver (core/lane/message_size.h). Which thread it
// seals on does not matter: a message is known by its key and IV, or by the place it names.
//
// The lane's counter is the driver's. We follow it by the IVs that come by (core/lane/iv_follower);
// when it has moved on without us the core learns that positions are gone, when the key changed
// that all of them are.
//
// Thread-safe. No lock is held while bytes are sealed, copied or guarded; wiping is the exception,
// because a position may be sealed again only after it. Fails by stop(): slots
// are wiped, everything is sealed when it is asked for.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "core/copy/message_match.h"
#include "core/lane/iv_follower.h"
#include "core/lane/message_size.h"
#include "core/pipeline/pipeline.h"
#include "core/predict/predictor.h"
#include "os/worker_pool.h"
#include "seal/split_gcm.h"
#include "serve/guard_book.h"
#include "serve/memory.h"
#include "serve/source_digest.h"

namespace sealane::serve {

// What a failed check throws in the preload (base/check.h).
struct BrokenInvariant : std::exception {
  const char* what() const noexcept override { return "a broken invariant"; }
};

struct AheadOptions {
  Policy policy;
  Costs costs;
  uint64_t slot_bytes_max = 256_MiB;
  SlotBudget* budget = nullptr;  // what all lanes have together; outlives them
  bool page_guards = true;
  int device = 0;  // the lane's, for those who watch,
  int lane = 0;    // and its number there
};

class Ahead {
 public:
  // What the lane does next: a part of a copy, or messages that carry nothing.
  struct Turn {
    FlightId flight = kNone;  // kNone: pads
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t message_bytes = kMessageBytes;
    uint32_t messages = 0;

    uint64_t start_of(uint64_t index) const { return index * message_bytes; }
  };

  // A message the driver is sealing. With a record: what it must become, update by update.
  struct Taken {
    bool ours = false;  // of the copy in flight: give() it back
    const uint8_t* record = nullptr;
    uint64_t record_bytes = 0;
    GcmHash hash{};         // of all of the record
    bool foreseen = false;  // sealed before it was asked for
    bool first = false;     // of its turn, and at its place
    uint64_t used = 0;      // bytes of the record that the driver got
  };

  Ahead(WorkerPool& pool, const RangeMap<HostBlock>& host_memory, const AheadOptions& options);
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  // Before claim(): nobody may write there any more until the copy is carried, or there is a
  // snapshot of it.
  void check_guards(const Range& host);
  // A copy to the device. `source` is where its bytes will stay until it is carried: the range
  // itself (at its turn) or a snapshot (in the program's call). Nothing: the lane is to carry it on
  // its own.
  std::optional<FlightId> claim(const Range& host, const void* source);
  // Returns when nobody reads it to seal it ahead: the program may change what we have a snapshot
  // of as soon as it goes on.
  void await_unread(const Range& host);

  // --- the program's thread
  std::optional<FlightId> request_out(const Range& host);  // a copy to the host
  void finish_out(FlightId flight, bool verified);         // it is over
  void allocated(const Range& host);
  void forget(const Range& host);  // it is going away: nobody begins to read it
  bool reads(const Range& host) const;
  void freed(const Range& host);  // the same; returns when nobody reads it any more

  // --- the lane's thread
  void ready(FlightId flight);
  // Until there is a turn, or no worker is at what would be next. True: there is.
  bool await_turn();
  std::optional<Turn> next();
  std::optional<Instant> deadline();  // look() then, even if nothing else happens
  void look();
  void begin(const Turn& turn);
  void end(const Turn& turn, bool succeeded);
  // The copy from here is over, however it went: returns when no worker reads it any more.
  void settle(const void* source, uint64_t bytes);

  // --- the driver's thread, or one it seals on. The first bytes of a message.
  Taken take(uint64_t key, const std::shared_ptr<const SplitGcm>& schedule, const Iv& iv,
             const uint8_t* in, uint64_t bytes);
  // The message is sealed, and was so long. What is left of a record must not be used any more.
  void give(const Taken& taken, uint64_t bytes);
  // Whose message is this? By the thread's copy in flight, else by key and IV, else by its source.
  static Ahead* find(uint64_t key, const Iv& iv, const uint8_t* in);

  void stop();
  bool stopped() const;
  bool sealing();  // are workers at it?

  // For those who watch.
  struct Stats {
    uint64_t number = 0;  // in the order they were made
    int device = 0;
    int lane = 0;
    Pipeline::Stats pipeline{};
    uint64_t answered = 0;        // messages answered from slots,
    uint64_t answered_ahead = 0;  // of those, sealed before they were asked for
    uint64_t slot_bytes = 0;
    uint64_t slot_bytes_peak = 0;
    std::string_view leader{};
    std::vector<PredictorScore> predictors{};  // those it was chosen from
  };
  Stats stats();
  // In the order they were made, also of those that have stopped.
  static std::vector<Stats> stats_of_all();

 private:
  using Digest = SourceDigest::Value;
  struct Slot {
    uint8_t* record = nullptr;  // nullptr: could not be sealed
    Range host;
    const uint8_t* source = nullptr;  // while it is being sealed: where from, if that is known
    Iv iv{};
    uint64_t key = 0;
    GcmHash hash{};
    bool ahead = false;              // sealed before it was asked for
    bool no_room = false;            // that is why it could not be
    std::optional<Digest> digest{};  // of what was sealed, where nothing else can tell
  };
  struct Job {
    Ahead* owner = nullptr;
    Seal seal{};
    const uint8_t* source = nullptr;  // nullptr: the program's own memory, which may vanish
    std::shared_ptr<const SplitGcm> schedule{};  // nullptr: no message has been seen yet
    uint64_t key = 0;
    Iv iv{};
    GuardBook::Pointer guard{};
    bool by_pages = false;  // nobody but the program's threads can write there
    bool digested = false;  // by their bytes alone are messages known
  };
  struct Copy {
    const uint8_t* source = nullptr;
    Range host;
  };
  // How long to wait for something the lane can do.
  enum class Patience : uint8_t {
    for_workers,  // while a worker is at what is next
    endless,      // it was promised
  };
  static constexpr LaneId kLane = 0;  // the core's
  static constexpr size_t kLanesMax = 64;

  // This is somebody else's process: should the core find itself wrong, or memory run out, nothing
  // is sealed ahead any more, and that is all. Not with the lock held.
  template <typename Work>
  auto attempt(Work&& work) -> decltype(work()) {
    try {
      return work();
    } catch (const std::exception&) {
      stop();
      return decltype(work())();
    }
  }

  void look_at_guards(const Range& host);
  void check_pages(GuardBook::Entry& guard, const Range& host, std::vector<Range>& written);
  void check_digests(const Range& host, std::vector<Range>& written);
  bool same_digest(const Slot& slot) const;
  bool stays_mapped(const Range& host) const;
  bool has_bytes_of(std::unique_lock<std::mutex>& lock, const uint8_t* in, uint64_t bytes);
  Stats stats_locked() const;
  void pump();
  void run(const Action& action);
  void start(const Seal& seal);
  bool arm_guard(const Job& job);
  void fill(Job& job, Slot& slot);
  GcmHash seal_in_parts(const Job& job, const uint8_t* from, uint8_t* record) const;
  void sealed(const Job& job, const Slot& slot);
  void run_short();
  void disarm_later(const Range& range);
  void stop_locked();
  void drop(SlotId slot, bool exposed);
  void drop_published(bool exposed);
  void follow(uint64_t key, const std::shared_ptr<const SplitGcm>& schedule, const Iv& iv);
  bool expects(uint64_t key, const Iv& iv);
  bool expects(const uint8_t* in);
  void await_turn(std::unique_lock<std::mutex>& lock, Patience patience);
  bool wait_for_turn(std::unique_lock<std::mutex>& lock);
  void pass_message(bool exposed, uint64_t bytes);
  void learn_message_size();
  void reconcile();
  bool reads_for(const Range& host) const;
  void tell_changes();
  void tell_sealed(const Job& job, Instant began) const;
  static Instant now() { return SteadyClock().now(); }

  static std::atomic<Ahead*> all_[kLanesMax];
  static std::atomic<uint64_t> made_;
  static thread_local Ahead* carrying_;  // whose turn this thread has handed to the driver

  WorkerPool& pool_;
  const RangeMap<HostBlock>& host_memory_;
  const AheadOptions options_;
  const uint64_t number_ = made_.fetch_add(1);
  std::unique_ptr<GuessSource> source_;
  GuardBook guards_;
  Staging memory_;
  const SourceDigest digest_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Pipeline pipeline_;
  std::vector<Slot> slots_;
  std::vector<SlotId> sealing_;
  std::vector<Copy> copies_;  // by flight
  std::deque<std::variant<Publish, Pad>> turns_;
  std::shared_ptr<const SplitGcm> schedule_;  // of the key seen last
  uint64_t key_ = 0;
  IvFollower follower_;
  uint64_t followed_ = 0;  // the position of the IV seen last; wraps to one before 0

  // What the lane has handed to the driver.
  std::optional<Turn> in_flight_;
  std::optional<Publish> publication_;  // the message whose turn it is
  uint64_t first_position_ = 0;         // of the turn
  MessageMatch messages_;               // those of the turn
  bool lost_ = false;                   // the channel went on in a way the law does not explain
  bool hides_places_ = false;           // the driver seals from somewhere else
  MessageSize message_size_{kMessageBytes};
  std::optional<Instant> short_until_;  // of memory
  bool stopped_ = false;
  uint64_t answered_ = 0;
  uint64_t answered_ahead_ = 0;
  std::string_view told_leader_;  // what those who watch know
  uint64_t told_slot_bytes_ = 0;
};

}  // namespace sealane::serve
