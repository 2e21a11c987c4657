// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/stats.h"

#include <time.h>

#include <algorithm>

#include "watch/actor.h"
#include "watch/output.h"

namespace sealane::serve {
namespace {

size_t at(Direction direction) { return static_cast<size_t>(direction); }

uint64_t nanoseconds(Instant instant) {
  return static_cast<uint64_t>(std::max<int64_t>(0, instant.time_since_epoch().count()));
}

uint64_t took_ns(const Event& event) {
  return static_cast<uint64_t>(std::max<int64_t>(0, (event.end - event.begin).count()));
}

// The entry that holds `text`, or a free one, taken. Null: none is left.
template <size_t count>
const std::atomic<const char*>* find_or_take(std::array<std::atomic<const char*>, count>& entries,
                                             const char* text) {
  for (auto& entry : entries) {
    const char* held = entry.load(std::memory_order_acquire);
    if (held == nullptr && entry.compare_exchange_strong(held, text)) return &entry;
    if (held == text) return &entry;
  }
  return nullptr;
}

}  // namespace

void Stats::handle(const Event& event) noexcept {
  const Actor& actor = actor_of(event);
  note_time(event);
  switch (event.kind) {
    case EventKind::copy:
      count_copy(event);
      break;
    case EventKind::carried:
      count(counts_.carried[at(event.direction)], event);
      if (event.together > 1) {
        add(counts_.coalesced[at(event.direction)], event.together);
        add(counts_.crossings_saved[at(event.direction)], event.together - 1u);
      }
      break;
    case EventKind::message:
      count(counts_.messages[at(event.direction)][static_cast<size_t>(event.answer)], event);
      break;
    case EventKind::part:
      count(counts_.parts, event);
      break;
    case EventKind::wait:
      count(counts_.waits, event);
      break;
    case EventKind::key:
      add(counts_.keys, 1);
      break;
    case EventKind::call:
      count_call(event);
      break;
    case EventKind::note:
      find_or_take(notes_, event.text);
      break;
    case EventKind::sealed:
      count(counts_.sealed[event.asynchronous ? 1 : 0], event);
      break;
    case EventKind::leader:
    case EventKind::slots:
    case EventKind::memory:
      break;
  }
  if (actor.role == Role::worker || actor.role == Role::lane) count_cpu(actor.number);
}

Counts Stats::counts() const {
  Counts out{};
  auto* to = reinterpret_cast<uint64_t*>(&out);
  auto* from = reinterpret_cast<uint64_t*>(&counts_);
  for (size_t i = 0; i < sizeof out / sizeof *to; ++i) {
    to[i] = std::atomic_ref(from[i]).load(std::memory_order_relaxed);
  }
  const uint64_t first = first_ns_.load(std::memory_order_relaxed);
  out.elapsed_ns = std::max(first, last_ns_.load(std::memory_order_relaxed)) - first;
  const auto sealing = lanes();
  for (size_t i = 0; i < std::min(sealing.size(), Counts::kLanesMax); ++i) {
    out.lanes[i] = {sealing[i].pipeline, sealing[i].answered_ahead};
  }
  return out;
}

std::vector<SpeculationStats> Stats::lanes() const {
  return options_.lanes != nullptr ? options_.lanes() : std::vector<SpeculationStats>();
}

std::optional<Counts> Stats::profiled() const {
  const std::lock_guard lock(profile_mutex_);
  if (!profile_start_) return profiled_;
  Counts sum = profiled_.value_or(Counts{});
  return sum += counts() - *profile_start_;
}

void Stats::finish() noexcept {
  if (!has_seen_anything()) return;  // a process that never used the GPU has nothing to say
  if (!options_.path.empty()) write_whole(options_.path, json() + "\n");
  if (options_.summary) say(summary());
}

void Stats::count(Tally& tally, const Event& event) {
  add(tally.count, 1);
  add(tally.bytes, event.bytes);
  add(tally.ns, took_ns(event));
  if (event.code != 0) add(tally.failed, 1);
}

void Stats::count_copy(const Event& event) {
  count(counts_.copies[at(event.direction)][event.asynchronous ? 1 : 0][event.pinned ? 1 : 0]
                      [static_cast<size_t>(event.route)],
        event);
  const double stock = options_.costs.copy_ns(event.direction, event.pinned, event.bytes);
  add(counts_.stock_ns[at(event.direction)], static_cast<uint64_t>(stock));
}

void Stats::count_call(const Event& event) {
  if (event.call == Call::launch_time || event.text == nullptr) return;
  if (event.call == Call::stop_profile) stop_profile();
  const auto* name = find_or_take(names_, event.text);
  if (name != nullptr) add(counts_.calls[name - names_.data()], 1);
  if (event.call == Call::start_profile) start_profile();
}

void Stats::start_profile() {
  const std::lock_guard lock(profile_mutex_);
  if (!profile_start_) profile_start_ = counts();
}

void Stats::stop_profile() {
  const std::lock_guard lock(profile_mutex_);
  if (!profile_start_) return;
  if (!profiled_) profiled_.emplace();
  *profiled_ += counts() - *profile_start_;
  profile_start_.reset();
}

void Stats::count_cpu(uint32_t thread) {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  const auto ns =
      static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
  const uint64_t known = cpu_[thread % kThreadsMax].exchange(ns, std::memory_order_relaxed);
  if (ns > known) add(counts_.cpu_ns, ns - known);
}

void Stats::note_time(const Event& event) {
  const uint64_t begin = nanoseconds(event.begin);
  const uint64_t end = nanoseconds(event.end);
  uint64_t known = first_ns_.load(std::memory_order_relaxed);
  while (begin != 0 && (known == 0 || begin < known) &&
         !first_ns_.compare_exchange_weak(known, begin, std::memory_order_relaxed)) {
  }
  known = last_ns_.load(std::memory_order_relaxed);
  while (end > known && !last_ns_.compare_exchange_weak(known, end, std::memory_order_relaxed)) {
  }
}

}  // namespace sealane::serve
