// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Seals ahead: drives core/pipeline for one lane to the device. The core decides what to seal when,
// whose turn it is, and what to give up; this carries it out with real memory, guards and workers.
//
//   1. request()   the program's thread   the guards are looked at, a slot that fits is claimed
//   2. next()      the lane's thread      whose turn is it? -> the lane hands that to the driver
//   3. take()      the driver's thread    the driver seals a message: is its slot ready and right?
//      give()
//   4. jobs        the crew               seal ahead what the core asks for
//
// A slot answers a message only if key, IV and length are those it was sealed with, the message is
// the one whose turn it is, and the driver names the place of the source it must name. Whatever
// does not fit is sealed then and there: a wrong guess, or a wrong idea of the driver, costs time.
// A driver that seals from a buffer of its own names no place we know; then the length must do, and
// the message must come in one piece.
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
#include "core/lane/iv_follower.h"
#include "core/lane/message_size.h"
#include "core/pipeline/pipeline.h"
#include "core/predict/predictor.h"
#include "live/serve/crew.h"
#include "live/serve/guard_book.h"
#include "live/serve/memory.h"
#include "seal/split_gcm.h"

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

    // Where in the turn its message `index` begins, and how long it should be.
    uint64_t start_of(uint32_t index) const { return index * message_bytes; }
    uint64_t length_of(uint32_t index) const {
      return std::min(message_bytes, bytes - start_of(index));
    }
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

  Ahead(Crew& crew, const RangeMap<HostBlock>& host_memory, const AheadOptions& options);
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  // --- the program's thread
  // A copy to the device. `source` is where its bytes will stay until it is carried: the range
  // itself, or a snapshot. Nothing: the lane is to carry it on its own.
  std::optional<FlightId> request(const Range& host, const void* source);
  std::optional<FlightId> request_out(const Range& host);  // a copy to the host
  void finish_out(FlightId flight, bool verified);         // it is over
  void allocated(const Range& host);
  void freed(const Range& host);  // returns when nobody reads it any more

  // --- the lane's thread
  void ready(FlightId flight);
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
  bool stopped();
  bool sealing();  // are workers at it?

  // For those who watch.
  struct Stats {
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
  static std::vector<Stats> stats_of_all();  // in the order they were made

 private:
  using Digest = Tag;
  struct Slot {
    uint8_t* record = nullptr;  // nullptr: could not be sealed
    Range host;
    const uint8_t* source = nullptr;  // while it is being sealed: where from, if that is known
    Iv iv{};
    uint64_t key = 0;
    GcmHash hash{};
    bool ahead = false;              // sealed before it was asked for
    bool no_room = false;            // that is why it could not be
    std::optional<Digest> digest{};  // of what was sealed, where pages cannot be guarded
  };
  struct Job {
    Ahead* owner = nullptr;
    Seal seal{};
    const uint8_t* source = nullptr;  // nullptr: the program's own memory, which may vanish
    std::shared_ptr<const SplitGcm> schedule{};  // nullptr: no message has been seen yet
    uint64_t key = 0;
    Iv iv{};
    GuardBook::Pointer guard{};
  };
  struct Copy {
    const uint8_t* source = nullptr;
    Range host;
    bool holds(const uint8_t* place) const {
      return place >= source && place < source + host.bytes;
    }
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

  void check_guards(const Range& host);
  void check_pages(GuardBook::Entry& guard, const Range& host, std::vector<Range>& written);
  void check_digests(const Range& host, std::vector<Range>& written);
  bool same_digest(const Slot& slot);
  Digest digest(uint8_t* bytes, uint64_t count) const;
  bool take_digest(const uint8_t* snapshot, Slot& slot);
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
  bool is_next(const uint8_t* in, uint64_t bytes) const;
  bool expects(uint64_t key, const Iv& iv);
  bool expects(const uint8_t* in);
  void await_turn(std::unique_lock<std::mutex>& lock, Patience patience);
  bool wait_for_turn(std::unique_lock<std::mutex>& lock);
  void pass_message(bool exposed);
  void learn_message_size();
  void reconcile();
  bool reads_for(const Range& host) const;
  void tell_changes();
  void tell_sealed(const Job& job, Instant began) const;
  static Instant now() { return SteadyClock().now(); }

  static std::atomic<Ahead*> all_[kLanesMax];
  static thread_local Ahead* carrying_;  // whose turn this thread has handed to the driver

  Crew& crew_;
  const RangeMap<HostBlock>& host_memory_;
  const AheadOptions options_;
  std::unique_ptr<GuessSource> source_;
  GuardBook guards_;
  Staging memory_;
  std::unique_ptr<SplitGcm> digest_key_;

  std::mutex mutex_;
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
  uint32_t done_ = 0;                   // messages of the turn that were sealed
  bool lost_ = false;                   // the channel went on in a way the law does not explain
  bool strayed_ = false;                // a message of the turn was not as long as expected
  MessageSize message_size_{kMessageBytes};
  std::optional<Instant> short_until_;  // of memory
  bool stopped_ = false;
  uint64_t answered_ = 0;
  uint64_t answered_ahead_ = 0;
  std::string_view told_leader_;  // what those who watch know
  uint64_t told_slot_bytes_ = 0;
};

}  // namespace sealane::serve
