// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/watch/stats.h"

#include <time.h>

#include <algorithm>

#include "live/serve/watch/actor.h"
#include "live/serve/watch/output.h"

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
template <typename Entries, typename Name>
auto* find_or_take(Entries& entries, const char* text, Name&& name) {
  for (auto& entry : entries) {
    const char* held = name(entry).load(std::memory_order_acquire);
    if (held == nullptr && name(entry).compare_exchange_strong(held, text)) return &entry;
    if (held == text) return &entry;
  }
  return static_cast<decltype(&entries[0])>(nullptr);
}

}  // namespace

std::string_view to_string(Route route) {
  switch (route) {
    case Route::carried:
      return "carried";
    case Route::passed:
      return "passed";
    case Route::passed_capture:
      return "passed_capture";
    case Route::passed_shape:
      return "passed_shape";
    case Route::passed_memory:
      return "passed_memory";
    case Route::passed_pageable:
      return "passed_pageable";
    case Route::passed_too_large:
      return "passed_too_large";
    case Route::passed_aside:
      return "passed_aside";
  }
  return "unknown";
}

std::string_view to_string(Answer answer) {
  switch (answer) {
    case Answer::real:
      return "libcrypto";
    case Answer::engine:
      return "engine";
    case Answer::parallel:
      return "parallel";
    case Answer::slot:
      return "slot";
    case Answer::deferred:
      return "deferred";
  }
  return "unknown";
}

std::string_view to_string(Direction direction) {
  return direction == Direction::to_device ? "to_device" : "to_host";
}

void Stats::handle(const Event& event) noexcept {
  const Actor& actor = actor_of(event);
  note_time(event);
  const auto count = [&](Tally& tally) {
    add(tally.count, 1);
    add(tally.bytes, event.bytes);
    add(tally.ns, took_ns(event));
    if (event.code != 0) add(tally.failed, 1);
  };
  switch (event.kind) {
    case EventKind::copy:
      count_copy(event);
      break;
    case EventKind::carried:
      count(carried_[at(event.direction)]);
      break;
    case EventKind::message:
      count(messages_[at(event.direction)][static_cast<size_t>(event.answer)]);
      break;
    case EventKind::part:
      count(parts_);
      break;
    case EventKind::wait:
      count(waits_);
      break;
    case EventKind::key:
      add(keys_, 1);
      break;
    case EventKind::call:
      if (event.call != Call::launch_time) count_name(event.text);
      break;
    case EventKind::note:
      find_or_take(
          notes_, event.text, [](auto& entry) -> auto& { return entry; });
      break;
    case EventKind::memory:
      break;
  }
  if (actor.role == Role::worker || actor.role == Role::lane) count_cpu(actor.number);
}

void Stats::finish() noexcept {
  if (!has_seen_anything()) return;  // a process that never used the GPU has nothing to say
  if (!options_.path.empty()) write_whole(options_.path, json() + "\n");
  if (options_.summary) say(summary());
}

void Stats::count_copy(const Event& event) {
  Tally& tally = copies_[at(event.direction)][event.asynchronous ? 1 : 0][event.pinned ? 1 : 0]
                        [static_cast<size_t>(event.route)];
  add(tally.count, 1);
  add(tally.bytes, event.bytes);
  add(tally.ns, took_ns(event));
  if (event.code != 0) add(tally.failed, 1);
  const double stock = options_.costs.copy_ns(event.direction, event.pinned, event.bytes);
  add(stock_ns_[at(event.direction)], static_cast<uint64_t>(stock));
}

void Stats::count_name(const char* name) {
  if (name == nullptr) return;
  auto* entry = find_or_take(
      calls_, name, [](auto& call) -> auto& { return call.name; });
  if (entry != nullptr) add(entry->count, 1);
}

void Stats::count_cpu(uint32_t thread) {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  const auto ns =
      static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
  cpu_[thread % kThreadsMax].store(ns, std::memory_order_relaxed);
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

void Stats::Sum::add(const Tally& tally) {
  count += tally.count.load(std::memory_order_relaxed);
  bytes += tally.bytes.load(std::memory_order_relaxed);
  ns += tally.ns.load(std::memory_order_relaxed);
  failed += tally.failed.load(std::memory_order_relaxed);
}

}  // namespace sealane::serve
