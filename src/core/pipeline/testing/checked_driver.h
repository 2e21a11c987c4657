// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Drives a Pipeline from a stream of bytes and checks every action against books of its own: the
// property test feeds it random bytes, the fuzzer bytes it has chosen. Each byte is an event: a
// copy, a write, a worker or a lane that is done, a key that changes. Whatever the order, the
// pipeline may not break a promise, and when everybody is done so are all copies.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/check.h"
#include "core/pipeline/pipeline.h"
#include "core/predict/tournament.h"

namespace sealane::testing {

class CheckedDriver {
 public:
  static constexpr uint64_t kBudget = 24_MiB;

  explicit CheckedDriver(const Policy& policy)
      : source_(PredictLimits{.transfers_max = 256}), pipeline_(options(policy), source_) {}

  void run(std::span<const uint8_t> events) {
    for (size_t i = 0; i + 1 < events.size() && !pipeline_.failed(); i += 2) {
      now_ += Duration(1 + events[i + 1] * 1000);
      event(events[i], events[i + 1]);
      drain();
    }
    finish();
  }

  const Pipeline& pipeline() const { return pipeline_; }

 private:
  struct Copy {
    CopyRequest request;
    std::set<uint32_t> published{};
    uint32_t landed = 0;
    bool ready = false;
  };
  struct SlotState {
    enum { unused, sealing, sealed, sent } state = unused;
    uint64_t position = 0;
    uint32_t epoch = 0;
    uint64_t bytes = 0;
    uint64_t written = 0;  // writes when it was begun
    Range host;
    bool ahead = false;
  };
  struct Sent {
    uint64_t position = 0;  // the last, of pads
    FlightId flight = kNone;
    SlotId slot = kNone;
  };

  static PipelineOptions options(const Policy& policy) {
    PipelineOptions made;
    made.policy = policy;
    made.slot_bytes_max = kBudget;
    return made;
  }

  static Range buffer(uint8_t which) {
    const uint64_t index = which % 12;
    return {0x1000'0000 + index * 8_MiB, index % 4 == 3 ? 200_KiB : (1 + index % 3) * 1_MiB};
  }

  void event(uint8_t kind, uint8_t what) {
    switch (kind % 16) {
      case 0:
      case 1:
      case 2:
      case 3:
        request(Direction::to_device, buffer(what), what);
        break;
      case 4:
        request(Direction::to_host, buffer(what), what);
        break;
      case 5:
      case 6:
      case 7:
        ready(what);
        break;
      case 8:
      case 9:
        sealed(what);
        break;
      case 10:
      case 11:
        landed();
        break;
      case 12:
        written({buffer(what).address + what * 100, 1 + what * 1000ULL});
        break;
      case 13:
        arrived();
        break;
      case 14:
        consumed(what);
        break;
      case 15:
        if (what % 4 == 0) {
          rotate();
        } else if (what % 4 == 1) {
          guarded(buffer(what / 4), what < 128 ? GuardKind::digest : GuardKind::page);
        } else {
          unsealed(what);
        }
        break;
    }
  }

  void request(Direction direction, const Range& host, uint8_t how) {
    if (pipeline_.full()) return;
    for (const auto& [id, other] : copies_) {
      // Programs do not copy to what they are copying from, or read what is still coming.
      if (other.request.host.overlaps(host) &&
          (other.request.direction != direction || direction == Direction::to_host)) {
        return;
      }
    }
    for (const Range& dirty : dirty_) {
      if (dirty.overlaps(host)) pipeline_.handle_written(dirty);
    }
    const CopyRequest made{.direction = direction, .host = host, .leaves = how % 2 != 0};
    const FlightId id = pipeline_.handle_copy(made, now_);
    SEALANE_CHECK(copies_.count(id) == 0, "a flight's number was used twice");
    copies_[id] = {.request = made};
  }

  void ready(uint8_t which) {
    if (copies_.empty()) return;
    auto found = copies_.begin();
    std::advance(found, which % copies_.size());
    if (!found->second.ready) make_ready(found->first);
  }
  void make_ready(FlightId id) {
    Copy& copy = copies_[id];
    copy.ready = true;
    if (copy.request.direction == Direction::to_host) return arriving_.push_back(id);
    pipeline_.handle_ready(id, now_);
  }

  void sealed(uint8_t which) {
    if (sealing_.empty()) return;
    const auto at = sealing_.begin() + which % sealing_.size();
    const SlotId slot = *at;
    sealing_.erase(at);
    slots_[slot].state = SlotState::sealed;
    pipeline_.handle_sealed(slot);
  }

  void unsealed(uint8_t which) {
    if (sealing_.empty()) return;
    const auto at = sealing_.begin() + which % sealing_.size();
    const SlotId slot = *at;
    sealing_.erase(at);
    slots_[slot].state = SlotState::sealed;  // nothing is in it, and that is wiped
    pipeline_.handle_unsealed(slot);
  }

  void landed() {
    if (!sent_) return;
    const Sent done = *sent_;
    sent_.reset();
    if (done.slot != kNone) free_slot(done.slot);
    pipeline_.handle_published(done.position, now_);
    if (done.flight == kNone) return;
    Copy& copy = copies_[done.flight];
    const bool last = ++copy.landed == message_count(copy.request.host.bytes);
    if (!last) return;
    SEALANE_CHECK(copy.published.size() == copy.landed, "done before every message went");
    copies_.erase(done.flight);
  }

  // Some guards turn out to be of another kind than the core asked for.
  void guarded(const Range& range, GuardKind kind) { pipeline_.handle_guarded(range, kind); }

  void written(const Range& range) {
    for (const auto& [id, copy] : copies_) {
      if (copy.request.host.overlaps(range)) return;
    }
    dirty_.push_back(range);
    ++writes_;
    for (const auto& [slot, state] : slots_) {
      if (state.ahead && state.host.overlaps(range)) stale_.insert(slot);
    }
  }

  void arrived() {
    if (arriving_.empty()) return;
    const FlightId id = arriving_.front();
    arriving_.pop_front();
    copies_.erase(id);
    pipeline_.handle_arrived(id);
  }

  void consumed(uint8_t which) {
    if (sent_) return;
    next_ += 1 + which / 64;
    pipeline_.handle_consumed(next_);
  }

  void rotate() {
    landed();
    ++epoch_;
    next_ = 0;
    pipeline_.handle_rotated();
  }

  // --- actions
  void drain() {
    while (auto action = pipeline_.poll(now_)) {
      std::visit([&](const auto& each) { check(each); }, *action);
    }
    SEALANE_CHECK(slot_bytes_ <= kBudget, "over the budget");
  }

  void check(const Seal& seal) {
    SlotState& slot = slots_[seal.slot];
    SEALANE_CHECK(slot.state == SlotState::unused, "sealed into a slot in use");
    SEALANE_CHECK(seal.position >= next_, "sealed for a position that is gone");
    slot = {SlotState::sealing, seal.position,       epoch_, seal.host.bytes, writes_,
            seal.host,          seal.flight == kNone};
    stale_.erase(seal.slot);
    slot_bytes_ += seal.host.bytes;
    sealing_.push_back(seal.slot);
  }

  void check(const Publish& out) {
    SEALANE_CHECK(!sent_ && out.position == next_, "published out of order");
    SEALANE_CHECK(copies_.count(out.flight) == 1 && copies_[out.flight].ready,
                  "published too early");
    SEALANE_CHECK(copies_[out.flight].published.insert(out.message).second, "a message went twice");
    if (out.slot != kNone) {
      SlotState& slot = slots_[out.slot];
      SEALANE_CHECK(slot.state == SlotState::sealed, "published what is not sealed");
      SEALANE_CHECK(slot.position == out.position && slot.epoch == epoch_, "another position");
      SEALANE_CHECK(stale_.count(out.slot) == 0, "published what has changed");
      slot.state = SlotState::sent;
    }
    ++next_;
    sent_ = {out.position, out.flight, out.slot};
  }

  void check(const Pad& pad) {
    SEALANE_CHECK(!sent_ && pad.position == next_, "padded out of order");
    next_ += pad.count;
    sent_ = {.position = next_ - 1};
  }

  void check(const Void& wiped) {
    const auto state = slots_[wiped.slot].state;
    SEALANE_CHECK(state == SlotState::sealed, "wiped a slot that is sent, in work or unused");
    free_slot(wiped.slot);
  }

  void check(const Guard& guard) {
    for (const Range& other : guarded_) {
      SEALANE_CHECK(!other.overlaps(guard.range), "guarded twice");
    }
    guarded_.push_back(guard.range);
    std::erase_if(dirty_, [&](const Range& dirty) { return guard.range.contains(dirty); });
  }
  void check(const Unguard& unguard) {
    const size_t gone = std::erase(guarded_, unguard.range);
    SEALANE_CHECK(gone == 1, "unguarded what was not guarded");
  }
  void free_slot(SlotId id) {
    slot_bytes_ -= slots_[id].bytes;
    slots_[id] = {};
    stale_.erase(id);
  }

  // Everybody does his work: nothing may be left.
  void finish() {
    for (int round = 0; round < 100'000 && !copies_.empty() && !pipeline_.failed(); ++round) {
      now_ += Duration(1'000'000);
      for (const auto& [id, copy] : copies_) {
        if (copy.ready) continue;
        make_ready(id);
        break;
      }
      sealed(0);
      landed();
      arrived();
      drain();
    }
    SEALANE_CHECK(!pipeline_.failed(), "failed though nobody tampered");
    SEALANE_CHECK(copies_.empty(), "a copy was never done");
  }

  Tournament source_;
  Pipeline pipeline_;
  Instant now_{Duration(1)};
  std::map<FlightId, Copy> copies_;
  std::map<SlotId, SlotState> slots_;
  std::set<SlotId> stale_;  // sealed from what has changed since
  std::vector<SlotId> sealing_;
  std::deque<FlightId> arriving_;
  std::optional<Sent> sent_;
  uint64_t next_ = 0;
  uint32_t epoch_ = 0;
  std::vector<Range> guarded_;
  std::vector<Range> dirty_;
  uint64_t writes_ = 0;
  uint64_t slot_bytes_ = 0;
};

}  // namespace sealane::testing
