// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Seals ahead for one copy thread: the door of core/copy/speculation.h, implemented by a Pipeline
// whose lane's counter is the driver's. `serve` drives it with threads and a driver
// (serve/live_speculator.h), `sim` with virtual time (sim/seal_crew.h).
//
//   1. handle_asked     what was sealed for it is claimed; its guards were asked just before
//   2. handle_turn      the copy may go
//   3. next_turn        the thread hands this to the driver, in one crossing
//      handle_seen      the driver seals a message, under this key and this IV
//      answer           what is to be sent in its place?
//      handle_answered  the message is the driver's now
//      end_crossing     its call is over: counters are compared, and the driver's is right
//   4. poll             seal, drop, guard, unguard: carried out in this order
//      handle_sealed    a worker is done
//
// The driver's counter is known by the IVs that come by (core/lane/driver_counter.h): when it has
// moved on without us those positions are gone, when the key has changed all of them are. How long
// its messages are is learnt (core/lane/message_size.h).
//
// A slot answers a message if it was sealed under the key the driver uses, for the IV the driver
// has reached, from the bytes whose turn it is (core/copy/message_match.h). Whatever does not fit
// is dropped before the driver seals anything in its place: of two records for one position only
// one is ever exposed. One message is answered at a time, and until it is over its slot stays: the
// driver's other messages are sealed as they are, whatever they look like.
//
// Fails by stop(): what is not being sent at that moment is dropped, nothing more is sealed ahead
// or answered, and the thread carries what it has as any other.
//
// Pure; not synchronised.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/copy/message_match.h"
#include "core/copy/speculation.h"
#include "core/lane/driver_counter.h"
#include "core/lane/message_size.h"
#include "core/pipeline/pipeline.h"
#include "core/pipeline/sealed_slots.h"
#include "core/pipeline/waited_copies.h"

namespace sealane {

// A message that the driver begins to seal.
struct SeenMessage {
  uint64_t key = 0;
  Iv iv{};
  Range piece{};               // its first piece, as the driver names it
  std::optional<bool> same{};  // asked to compare: are these the bytes of that slot?
};
struct Verdict {
  enum class Kind : uint8_t {
    drivers,    // none of the copy's: sealed as it is
    wait,       // a worker is at its record: ask again
    compare,    // with what was sealed into the slot: ask again, with the result
    seal_now,   // the copy's next: handle_answered() when it is sealed
    from_slot,  // likewise, and the record is there
  };
  Kind kind = Kind::drivers;
  SlotId slot = kNone;    // seal_now: the one that did not fit, which is gone
  bool foreseen = false;  // from_slot: sealed before it was asked for
};

class Speculator final : public Speculation {
 public:
  Speculator(const PipelineOptions& options, GuessSource& source);  // which outlives it

  bool handle_asked(CopyId copy, const CopyCall& call, HostSide side, Instant now) override;
  void handle_turn(CopyId copy, Instant now) override;
  std::optional<WireTurn> next_turn(Instant now) override;
  void handle_over(CopyId copy, bool succeeded, Instant now) override;
  void handle_freed(const Range& host) override {
    if (!stopped_) pipeline_.handle_freed(host);
  }
  bool reads(const Range& host) const override { return slots_.reads(host); }
  bool stopped() const override { return stopped_; }

  // --- the crossing that next_turn() began
  bool crossing() const { return turn_.has_value(); }
  // Could it be of this crossing? By the IV that comes next, or by the place it names.
  bool expects(uint64_t key, const Iv& iv) const { return turn_ && counter_.expects(key, iv); }
  bool expects(uint64_t place) const {
    return turn_ && messages_.owner_of({place, 0}) == MessageOwner::copy;
  }
  void handle_seen(uint64_t key, const Iv& iv) { counter_.observe(key, iv, first_position_); }
  Verdict answer(const SeenMessage& message, Instant now);
  // It was so long. `exposed`: the driver has got all of the record.
  void handle_answered(const Iv& iv, bool exposed, uint64_t bytes, Instant now);
  // False: a worker is at a message that the driver has sealed in a way nobody could follow. Again
  // when it is done.
  bool end_crossing(bool succeeded, Instant now);
  // Has next_turn() something? Else: is a worker at what it would be?
  bool has_turn(Instant now);
  bool waits_for_worker() const { return !stopped_ && pipeline_.waits_for_worker(); }

  // --- workers and guards
  std::optional<SealAction> poll(Instant now);
  enum class Sealed : uint8_t { whole, not_at_all, no_room };
  void handle_sealed(SlotId slot, Sealed how, Instant now);
  bool wanted(SlotId slot) const { return !stopped_ && !pipeline_.slots()[slot].orphan; }
  bool sealing() const { return slots_.sealing(); }
  bool sealing_for(CopyId copy) const { return slots_.sealing_for(copy); }
  void sealing_ahead(const Range& host, std::vector<Range>& out) const {
    slots_.sealing_ahead(host, out);
  }
  // These as in pipeline.h.
  void handle_allocated(const Range& range) { pipeline_.handle_allocated(range); }
  void handle_written(const Range& range) {
    if (!stopped_) pipeline_.handle_written(range);
  }
  void handle_guarded(const Range& range, GuardKind kind) {
    if (!stopped_) pipeline_.handle_guarded(range, kind);
  }
  GuardKind guard_of(const Range& host) const {
    return stopped_ ? GuardKind::none : pipeline_.guard_of(host);
  }
  // poll() then, even if nothing else happens.
  std::optional<Instant> deadline() const { return stopped_ ? std::nullopt : pipeline_.deadline(); }
  void stop();

  struct Stats {
    uint64_t answered = 0;        // messages, from slots;
    uint64_t answered_ahead = 0;  // of those, sealed before they were asked for
  };
  const Stats& stats() const { return stats_; }
  const Pipeline& pipeline() const { return pipeline_; }

 private:
  struct Asked {
    FlightId flight = kNone;
    Range place;
    bool inward = true;
  };

  void observe_waiting(const CopyCall& call, Instant now);
  void pump(Instant now);
  void begin_sealing(const Seal& seal);
  void drop_published(bool exposed);
  bool take_publication(Instant now);
  bool fits(const SeenMessage& message) const;
  void pass_message(bool exposed, uint64_t bytes, Instant now);
  void reconcile();

  Pipeline pipeline_;
  const bool only_waited_;  // sealing ahead pays only for who waits for copies
  WaitedCopies waited_;
  std::unordered_map<CopyId, Asked> asked_;
  std::vector<CopyId> copies_;  // by flight
  SealedSlots slots_{SlotPool::kSlotsMax};
  std::deque<std::variant<Publish, Pad>> turns_;

  DriverCounter counter_;
  bool hides_places_ = false;  // the driver seals from somewhere else
  MessageSize message_size_{kMessageBytes};

  // The crossing.
  std::optional<WireTurn> turn_;
  uint64_t first_position_ = 0;
  MessageMatch messages_;
  std::optional<Publish> publication_;  // the message whose turn it is,
  std::optional<Iv> answering_;         // which the driver has begun, under this IV,
  bool first_ = false;                  // the crossing's first, at its place
  std::optional<Instant> short_until_;  // of memory
  bool stopped_ = false;
  Stats stats_;
};

}  // namespace sealane
