// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What is to be sealed ahead: a list of expected transfers in the order they are expected, each at
// consecutive positions behind the one before, with some leeway for what others send in between.
// It is compared with the newest guess after every bulk request: as far as they agree it stays,
// from the first difference on it is relinquished.
//
// It knows what guesses have cost and brought (account.h), which ranges keep changing
// (changing.h), and how much may be sealed ahead: that grows with every transfer whose guard held,
// and falls to one with the first that was written.
//
// Events: extend() after a request, claim() by one, handle_written, handle_guarded, handle_freed,
// and whatever needs the positions or the memory. Actions, into the books: guard, unguard, void.
//
// Part of Pipeline; pure. It fails by planning nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "core/pipeline/account.h"
#include "core/pipeline/changing.h"
#include "core/pipeline/lane_books.h"
#include "core/pipeline/leeway.h"
#include "core/predict/mapped_ranges.h"
#include "core/predict/predictor.h"

namespace sealane {

// A transfer to be sealed ahead: consecutive positions, one guard from the first seal on.
struct Planned {
  Range host;
  uint64_t first = 0;
  uint32_t messages = 0;
  GuardKind guard = GuardKind::none;
};

class SealPlan {
 public:
  static constexpr size_t kPlannedMax = 256;

  SealPlan(LaneBooks& lane, GuessSource& source);  // which outlive it

  // Asks what comes next and plans it from `at` on, where all requests are placed.
  void extend(uint64_t at, Instant now);
  // A bulk copy to the device is asked for: what others sent since the last one is learnt.
  void handle_request(const Range& host);
  // The transfer is planned: its positions are the flight's now.
  bool claim(FlightId flight);

  void handle_written(const Range& range);
  void handle_guarded(const Range& range, GuardKind kind);
  void handle_freed(const Range& range);
  void handle_inbound(const Range& range);  // a copy to the host will write there
  void handle_room();                       // budget or messages have another size
  void handle_consumed(uint64_t head);      // others used the lane up to there
  void charge(Duration lost) { account_.spend(lost); }

  // --- requests go before guesses
  void make_room(uint64_t messages);  // before the first guess, for so many
  bool give_last(VoidReason why);     // the one needed last goes; false: there is none
  void give_first(VoidReason why) { give_up(0, why); }
  void give_all(VoidReason why) { relinquish(0, why); }

  // --- what is sealed now
  // A guard is armed for a whole range, and whoever claims the range meanwhile waits for that. So
  // while something is being sent it is armed only if it takes less time than all before it.
  bool time_to_guard(uint64_t position) const;
  void guard(uint64_t position);  // a worker is about to read it

  const Ring<Planned>& planned() const { return planned_; }
  GuardKind guard_of(const Range& host) const;
  bool slots_pay() const { return slots_pay_; }

 private:
  bool add(const Range& host, size_t index, uint64_t first);
  bool sealable(const Range& host) const;
  bool worth_sealing(const Range& host) const;
  void credit(const Planned& planned, uint32_t ready, bool intact);
  size_t find(uint64_t position) const;
  uint32_t leeway() const;
  uint64_t depth_max() const;
  GuardKind guard_kind(const Range& host) const;
  void relinquish(size_t first_planned, VoidReason why);
  void give_up(size_t index, VoidReason why);
  void give_touched(const Range& range, VoidReason why);
  void break_guard(const Planned& planned, const Range& written);

  LaneBooks& lane_;
  GuessSource& source_;
  const Policy& policy_;
  const Costs& costs_;
  const bool slots_pay_;
  Ring<Planned> planned_;  // in position order
  Account account_;
  ChangingRanges changing_;
  MappedRanges digested_;  // memory whose pages could not be protected
  Leeway leeway_;
  uint32_t extra_ = 0;        // positions others used since the last request
  uint64_t depth_bytes_ = 0;  // how much to seal ahead, beyond one transfer
};

}  // namespace sealane
