// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What to seal ahead, and how it is given up. The plan of a lane is a list of expected transfers in
// the order they are expected, each at consecutive positions behind the one before, with some
// leeway for what others send in between. It is compared with the newest guess after every bulk
// request: as far as they agree it stays, from the first difference on it is relinquished.

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "core/pipeline/pipeline.h"

namespace sealane {
namespace {

constexpr size_t kGuessesMax = 32;
constexpr size_t kGuessesMore = 8;  // beyond what is planned already
constexpr float kConfidenceMin = 0.5F;

}  // namespace

std::string_view to_string(VoidReason reason) {
  switch (reason) {
    case VoidReason::stale:
      return "stale";
    case VoidReason::passed:
      return "passed";
    case VoidReason::rotated:
      return "rotated";
    case VoidReason::budget:
      return "budget";
    case VoidReason::unforeseen:
      return "unforeseen";
    case VoidReason::freed:
      return "freed";
    case VoidReason::costly:
      return "costly";
  }
  return "unknown";
}

// Walks along the guesses and the plan. What is expected but cannot be sealed yet (it is on its way
// from the device, planned already for an earlier turn, or changes too often) gets a gap of its
// size: a later plan fills it, or the live copy does.
void Pipeline::plan(Instant now) {
  if (!account_.open(now) && !options_.policy.forced()) return;
  std::array<Guess, kGuessesMax> guesses;
  const size_t wanted = std::min(lane_.planned.size() + kGuessesMore, kGuessesMax);
  const size_t count = source_.predict({guesses.data(), wanted});
  const uint32_t leave = leeway();
  size_t agreed = 0;
  size_t considered = 0;
  uint64_t bytes = 0;             // of all considered but the first
  uint64_t at = requested_end();  // where the next expected transfer begins
  for (size_t i = 0; i < count && guesses[i].confidence >= kConfidenceMin; ++i) {
    const Range& host = guesses[i].host;
    const uint32_t messages = message_count(host.bytes, message_bytes_);
    if (host.bytes < options_.policy.bulk_bytes_min) continue;
    if (considered++ > 0) bytes += host.bytes;
    if (bytes > lane_.depth_bytes) break;
    if (agreed < lane_.planned.size() && lane_.planned[agreed].host == host) {
      at = lane_.planned[agreed++].first + messages;
      continue;
    }
    at += leave;
    const bool fits =
        agreed == lane_.planned.size() || at + messages <= lane_.planned[agreed].first;
    if (!fits) relinquish(agreed, VoidReason::unforeseen);
    if (sealable(host) && !extend(host, agreed++, at)) break;
    at += messages;
  }
}

// One past the last position a requested message has, or will have: those without a position take
// the lowest that are free.
uint64_t Pipeline::requested_end() {
  uint64_t end = lane_.frontier();
  while (end > lane_.head() && lane_.at(end - 1).flight == kNone &&
         lane_.at(end - 1).state != MessageState::orphaned) {
    --end;
  }
  uint64_t unplaced = lane_.displaced.size();
  for (size_t i = 0; i < lane_.backlog.size(); ++i) {
    const Flight& flight = flights_[lane_.backlog[i]];
    unplaced += flight.messages - flight.placed;
  }
  for (uint64_t position = lane_.head(); unplaced > 0 && position < end; ++position) {
    if (lane_.at(position).state == MessageState::hole) --unplaced;
  }
  return end + unplaced;
}

// Plans a transfer at the positions from `first` on, as the plan's `index`.
bool Pipeline::extend(const Range& host, size_t index, uint64_t first) {
  if (lane_.planned.full() || host.bytes > depth_max()) return false;
  const Planned planned{
      .host = host, .first = first, .messages = message_count(host.bytes, message_bytes_)};
  for (uint32_t i = 0; i < planned.messages; ++i) {
    const Range part = message_range(host, i, message_bytes_);
    Message* message = lane_.reserve(planned.first + i, part.bytes);
    if (message == nullptr) {
      while (i-- > 0) lane_.give_back(lane_.at(planned.first + i));
      return false;
    }
    message->state = MessageState::waiting;
    message->index = i;
    message->host = part;
  }
  lane_.wake(planned.first);
  lane_.planned.insert(index, planned);
  ++stats_.guesses;
  return true;
}

// Armed when the first worker is about to read it: a plan that comes too late costs nothing.
void Pipeline::guard_planned(uint64_t position) {
  Planned& planned = lane_.planned[find_planned(position)];
  const Costs& costs = options_.costs;
  Duration work = costs.seal(lane_.at(position).host.bytes);
  if (planned.guard == GuardKind::none) {
    planned.guard = guard_kind(planned.host);
    actions_.push(Guard{planned.host, planned.guard});
    work += Costs::bytes_time(costs.guard_ns_per_byte, planned.host.bytes);
  }
  const double lost = static_cast<double>(work.count()) * costs.shared_core;
  account_.spend(Duration(static_cast<int64_t>(lost)));
}

size_t Pipeline::find_planned(uint64_t position) const {
  size_t i = 0;
  while (position >= lane_.planned[i].first + lane_.planned[i].messages) ++i;
  return i;
}

// A guard is armed for a whole range, and whoever claims the range meanwhile waits for that. So
// while something is being sent it is armed only if it takes less time than all that goes before.
bool Pipeline::time_to_guard(uint64_t position) const {
  const Planned& planned = lane_.planned[find_planned(position)];
  if (planned.guard != GuardKind::none || guard_kind(planned.host) != GuardKind::page) return true;
  const uint64_t before = planned.first - lane_.head() + (lane_.under_way ? 1 : 0);
  if (before == 0 || (!lane_.under_way && lane_.at(lane_.head()).flight == kNone)) return true;
  const Duration arming = Costs::bytes_time(options_.costs.guard_ns_per_byte, planned.host.bytes);
  return arming <= options_.costs.live(before * message_bytes_, before);
}

// One guard per byte: arming it again would forget what was written since.
bool Pipeline::sealable(const Range& host) const {
  const auto& planned = lane_.planned;
  for (size_t i = 0; i < planned.size(); ++i) {
    if (planned[i].host.overlaps(host)) return false;
  }
  return worth_sealing(host) && !inbound(host);
}

bool Pipeline::worth_sealing(const Range& host) const {
  if (!options_.policy.by_cost) return true;
  if (!slots_pay_ || changing_.avoid(host)) return false;
  if (options_.policy.forced()) return true;
  const Costs& costs = options_.costs;
  const uint32_t messages = message_count(host.bytes, message_bytes_);
  const Duration gain = costs.live(host.bytes, messages) - costs.ready(host.bytes, messages);
  return gain > costs.check(guard_kind(host) == GuardKind::digest, host.bytes);
}

uint32_t Pipeline::leeway() const {
  if (!options_.policy.by_cost) return options_.policy.fixed_leeway;
  const Duration lost = options_.costs.seal(message_bytes_) * 4;
  return lane_.leeway.best(options_.costs.pad, lost);
}

uint64_t Pipeline::depth_max() const {
  // A lane cannot plan beyond its window, nor beyond what guesses may take of the budget.
  const uint64_t window = Ledger::kWindow / 2 * message_bytes_;
  const uint64_t budget = slots_.bytes_max() - slots_.bytes_max() / 8;
  return options_.rules.budget ? std::min(window, budget) : window;
}

GuardKind Pipeline::guard_kind(const Range& host) const {
  const bool pages = options_.page_guards && !digested_.contains(host);
  return pages ? GuardKind::page : GuardKind::digest;
}

// What is planned already stays only if it is worth a digest in the request.
void Pipeline::handle_guarded(const Range& range, GuardKind kind) {
  if (kind == GuardKind::digest) {
    digested_.add(range);
  } else {
    digested_.erase(range);
  }
  for (size_t i = lane_.planned.size(); i-- > 0;) {
    Planned& planned = lane_.planned[i];
    const bool told = planned.guard != GuardKind::none && planned.host.overlaps(range);
    if (!told || std::exchange(planned.guard, kind) == kind) continue;
    if (!worth_sealing(planned.host)) void_planned(i, VoidReason::costly);
  }
}

void Pipeline::handle_message_bytes(uint64_t bytes) {
  SEALANE_CHECK(bytes > 0, "a message carries something");
  relinquish(0, VoidReason::passed);
  message_bytes_ = bytes;
  lane_.depth_bytes = std::min(lane_.depth_bytes, depth_max());
  lane_.plan_due = true;
}

// --- give up

void Pipeline::relinquish(size_t first_planned, VoidReason why) {
  if (first_planned >= lane_.planned.size()) return;
  while (lane_.planned.size() > first_planned) void_planned(lane_.planned.size() - 1, why);
  if (options_.policy.by_cost) lane_.depth_bytes = lane_.depth_bytes * 3 / 4;
}

void Pipeline::void_planned(size_t index, VoidReason why) {
  const Planned planned = lane_.planned[index];
  lane_.planned.erase(index);
  ++stats_.relinquished;
  if (planned.guard != GuardKind::none) actions_.push(Unguard{planned.host});
  for (uint32_t i = 0; i < planned.messages; ++i) {
    Message& message = lane_.at(planned.first + i);
    switch (message.state) {
      case MessageState::sealing:
      case MessageState::spoiled:
        slots_.orphan(message.slot, why);
        message.state = MessageState::orphaned;
        continue;
      case MessageState::ready:
        void_slot(message.slot, why);
        break;
      default:
        break;
    }
    lane_.give_back(message);
  }
}

// Wiped before its position can be sealed again: the action comes before any later one.
void Pipeline::void_slot(SlotId slot, VoidReason why) {
  ++stats_.voided;
  ++stats_.voided_for[static_cast<size_t>(why)];
  slots_.give(slot);
  actions_.push(Void{slot});
}

void Pipeline::handle_written(const Range& range, Instant) {
  for (size_t i = 0; i < lane_.planned.size(); ++i) {
    const Planned& planned = lane_.planned[i];
    const bool guarded = planned.guard != GuardKind::none;
    if (guarded && planned.host.overlaps(range)) break_guard(planned, range);
  }
}

// The messages that carry what was written are wiped and keep their positions: if the copy is
// requested they are sealed then, in their old places.
void Pipeline::break_guard(const Planned& planned, const Range& written) {
  const uint64_t first = std::max(planned.host.address, written.address);
  const uint64_t end = std::min(planned.host.end(), written.end());
  if (planned.guard == GuardKind::page) {
    account_.spend(Costs::bytes_time(options_.costs.rewrite_ns_per_byte, end - first));
  }
  changing_.strike(planned.host);
  if (options_.policy.by_cost)
    lane_.depth_bytes = 0;  // others may be written too: one at a time, until one holds again
  if (!options_.rules.stale) return;
  for (uint32_t i = 0; i < planned.messages; ++i) {
    Message& message = lane_.at(planned.first + i);
    if (!message.host.overlaps(written)) continue;
    if (message.state == MessageState::ready) {
      void_slot(std::exchange(message.slot, kNone), VoidReason::stale);
    }
    message.state = message.state == MessageState::sealing || message.state == MessageState::spoiled
                        ? MessageState::spoiled
                        : MessageState::broken;
  }
}

void Pipeline::handle_allocated(const Range& range) { source_.allow(range); }

void Pipeline::handle_freed(const Range& range, Instant) {
  source_.forget(range);
  digested_.erase(range);
  for (size_t i = lane_.planned.size(); i-- > 0;) {
    if (lane_.planned[i].host.overlaps(range)) void_planned(i, VoidReason::freed);
  }
}

}  // namespace sealane
