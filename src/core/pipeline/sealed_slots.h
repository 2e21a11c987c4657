// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the slots of a lane hold: under which key and IV, from which bytes, whether a worker is
// still at it; and what is to be done about them, in order.
//
// Events: begin() when a record is given to the workers, end() when they are done, drop() when
// nobody needs it any more. Actions, by take(): seal, drop, and the guards of whoever plans,
// between them. What was sealed is dropped once, before anything is sealed into its slot again: of
// two records for one position only one is ever exposed.
//
// Part of Speculator; pure. It fails with it: drop_all() leaves what is being sent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/copy/copy_call.h"
#include "core/lane/iv_law.h"
#include "core/pipeline/action.h"

namespace sealane {

// A worker seals one message into a slot.
struct SealSlot {
  SlotId slot;
  Range host;    // what the record carries
  Range from;    // where those bytes are read: the same, or a snapshot
  CopyId copy;   // kNoCopy: ahead of any
  uint64_t key;  // known by this number
  Iv iv;
  bool digest;  // by its bytes alone a message may be known
};
// What the slot holds is wiped now, unless all of it is exposed: then anybody may have it.
struct DropSlot {
  SlotId slot;
  bool exposed;
};
using SealAction = std::variant<SealSlot, DropSlot, Guard, Unguard>;

class SealedSlots {
 public:
  explicit SealedSlots(size_t count) : slots_(count) { with_workers_.reserve(count); }

  const SealSlot& operator[](SlotId id) const { return slots_[id].what; }
  bool sealed(SlotId id) const { return slots_[id].sealed; }
  bool ahead(SlotId id) const { return slots_[id].what.copy == kNoCopy; }

  void begin(const SealSlot& what) {
    slots_[what.slot] = {what};
    actions_.emplace_back(what);
    with_workers_.push_back(what.slot);
  }
  void end(SlotId id, bool whole) {
    std::erase(with_workers_, id);
    slots_[id].sealed = whole;
  }
  void drop(SlotId id, bool exposed) {
    if (slots_[id].sealed) actions_.emplace_back(DropSlot{id, exposed});
    slots_[id] = {};
  }
  // But this one. What no worker has begun with is not sealed any more.
  void drop_all(SlotId but) {
    std::erase_if(actions_, [&](const SealAction& action) {
      const auto* seal = std::get_if<SealSlot>(&action);
      return seal != nullptr && std::erase(with_workers_, seal->slot) > 0;
    });
    for (SlotId id = 0; id < slots_.size(); ++id) {
      if (slots_[id].sealed && id != but) drop(id, false);
    }
  }
  void guard(const Guard& guard) { actions_.emplace_back(guard); }
  void unguard(const Unguard& unguard) { actions_.emplace_back(unguard); }
  std::optional<SealAction> take() {
    if (actions_.empty()) return std::nullopt;
    const SealAction action = actions_.front();
    actions_.pop_front();
    return action;
  }

  // --- with workers, or about to be
  bool sealing() const { return !with_workers_.empty(); }
  bool sealing_for(CopyId copy) const {
    return any([&](const SealSlot& what) { return what.copy == copy; });
  }
  bool reads(const Range& host) const {
    return any([&](const SealSlot& what) { return what.from.overlaps(host); });
  }
  // Of these ranges of the source, a worker may be reading some ahead.
  void sealing_ahead(const Range& host, std::vector<Range>& out) const {
    for (const SlotId id : with_workers_) {
      const SealSlot& what = slots_[id].what;
      if (ahead(id) && what.host.overlaps(host)) out.push_back(what.host);
    }
  }

 private:
  struct Slot {
    SealSlot what{};
    bool sealed = false;
  };

  template <typename Predicate>
  bool any(const Predicate& predicate) const {
    return std::any_of(with_workers_.begin(), with_workers_.end(),
                       [&](SlotId id) { return predicate(slots_[id].what); });
  }

  std::vector<Slot> slots_;
  std::vector<SlotId> with_workers_;
  std::deque<SealAction> actions_;
};

}  // namespace sealane
