// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/program_streams.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace sealane::serve {
namespace {

bool is_default(StreamHandle stream) {
  return reinterpret_cast<uintptr_t>(stream) <= kPerThreadStream;
}

bool is_legacy(StreamHandle stream) { return reinterpret_cast<uintptr_t>(stream) <= kLegacyStream; }

bool has_gates(Stream& stream) {
  const std::lock_guard held(stream.mutex);
  return std::any_of(stream.gates.begin(), stream.gates.end(),
                     [](const StreamGates& gates) { return gates.thread() != nullptr; });
}

}  // namespace

// A default stream is the current context's.
std::optional<uint64_t> ProgramStreams::key_of(StreamHandle stream) const {
  if (!is_default(stream)) return reinterpret_cast<uint64_t>(stream);
  ContextHandle context = nullptr;
  if (driver_.context_of(stream, context) != kSuccess) return std::nullopt;
  uint64_t key = reinterpret_cast<uint64_t>(context) ^ 0x5ea1;
  if (!is_legacy(stream)) key ^= static_cast<uint64_t>(pthread_self()) << 1 | 1;
  return key;
}

StreamPointer ProgramStreams::get(StreamHandle handle) {
  const auto key = key_of(handle);
  if (!key) return nullptr;
  {
    const std::shared_lock lock(mutex_);
    const auto known = streams_.find(*key);
    if (known != streams_.end()) return known->second;
  }
  auto made = std::make_shared<Stream>();
  made->key = made_.fetch_add(1) + 1;
  made->legacy = is_legacy(handle);
  made->entering = &entering(*key);
  if (driver_.context_of(handle, made->context) != kSuccess) return nullptr;
  if (driver_.device_of(made->context, made->device) != kSuccess) return nullptr;
  const std::unique_lock lock(mutex_);
  return streams_.emplace(*key, std::move(made)).first->second;
}

// In every call of the program that puts something into a stream.
ProgramStreams::Entering::Entering(ProgramStreams& streams, StreamHandle handle)
    : streams_(streams),
      legacy_(is_legacy(handle)),
      key_(legacy_ ? std::nullopt : streams.key_of(handle)),
      entering_(legacy_ ? streams.entering_legacy_ : streams.entering(key_.value_or(0))) {
  entering_.fetch_add(1, std::memory_order_relaxed);  // whoever must see it was told since
}

ProgramStreams::Entering::~Entering() {
  if (legacy_) {
    streams_.legacy_epoch_.fetch_add(1, std::memory_order_relaxed);
  } else if (key_) {
    const std::shared_lock lock(streams_.mutex_);
    const auto known = streams_.streams_.find(*key_);
    if (known != streams_.streams_.end()) {
      known->second->touched.store(true, std::memory_order_relaxed);
    }
  }
  entering_.fetch_sub(1, std::memory_order_release);  // the note is there when it does not count
}

bool ProgramStreams::take_touched(Stream& stream) {
  const bool now = stream.entering->load(std::memory_order_acquire) != 0;
  return stream.touched.exchange(false, std::memory_order_relaxed) || now;
}

uint64_t ProgramStreams::legacy_epoch() {
  if (entering_legacy_.load(std::memory_order_acquire) == 0) {
    return legacy_epoch_.load(std::memory_order_relaxed);
  }
  return legacy_epoch_.fetch_add(1, std::memory_order_relaxed) + 1;
}

// --- their end

ProgramStreams::Left ProgramStreams::leave_stream(StreamHandle handle) {
  Left left;
  const auto key = reinterpret_cast<uint64_t>(handle);
  {
    const std::unique_lock lock(mutex_);
    const auto found = streams_.find(key);
    if (found != streams_.end()) {
      left.streams.emplace_back(*found);
      if (has_gates(*found->second)) ended_.push_back({found->second, nullptr});
      streams_.erase(found);
    }
  }
  take_captures(left, [&](const auto& entry) { return entry.first == key; });
  return left;
}

ProgramStreams::Left ProgramStreams::leave_context(ContextHandle context) {
  Left left;
  left.context = context;
  {
    const std::lock_guard nobody_asks(asking_);
    const std::unique_lock lock(mutex_);
    std::copy_if(streams_.begin(), streams_.end(), std::back_inserter(left.streams),
                 [&](const auto& entry) { return entry.second->context == context; });
    ended_.reserve(ended_.size() + left.streams.size());
    for (const auto& [key, stream] : left.streams) {
      ended_.push_back({stream, nullptr});
      streams_.erase(key);
    }
    for (Ended& one : ended_) {
      if (one.stream->context == context) one.leaves_with = context;
    }
  }
  take_captures(left, [&](const auto& entry) { return entry.second == context; });
  return left;
}

template <typename Goes>
void ProgramStreams::take_captures(Left& left, Goes&& goes) {
  const std::lock_guard lock(captures_mutex_);
  std::copy_if(capturing_.begin(), capturing_.end(), std::back_inserter(left.capturing), goes);
  for (const auto& entry : left.capturing) capturing_.erase(entry.first);
  captures_.store(capturing_.size());
  left.ends_captures = !left.capturing.empty() && capturing_.empty();
}

bool ProgramStreams::stay(const Left& left) {
  {
    const std::unique_lock lock(mutex_);
    for (const auto& entry : left.streams) {
      entry.second->touched.store(true, std::memory_order_relaxed);
      streams_.insert_or_assign(entry.first, entry.second);
      std::erase_if(ended_, [&](const Ended& one) { return one.stream == entry.second; });
    }
    for (Ended& one : ended_) {
      if (one.leaves_with == left.context) one.leaves_with = nullptr;
    }
  }
  const std::lock_guard lock(captures_mutex_);
  const bool none = capturing_.empty();
  capturing_.insert(left.capturing.begin(), left.capturing.end());
  captures_.store(capturing_.size());
  return none && !capturing_.empty();
}

// The last of a stream may make the driver destroy a context, which takes its time: without locks.
void ProgramStreams::forget_context(const Left& left) {
  std::vector<Ended> gone;
  const std::unique_lock lock(mutex_);
  const auto goes = [&](const Ended& one) { return one.leaves_with == left.context; };
  std::copy_if(ended_.begin(), ended_.end(), std::back_inserter(gone), goes);
  std::erase_if(ended_, goes);
}

void ProgramStreams::mark_end(const StreamPointer& stream, const EventPool::LeasePointer& end) {
  const std::unique_lock lock(mutex_);
  for (Ended& one : ended_) {
    if (one.stream == stream) one.end = end;
  }
}

// Where the driver says that it has failed nothing waits any more.
void ProgramStreams::drop_ended() {
  std::vector<Ended> asked;  // let go without locks
  const std::lock_guard asking(asking_);
  {
    const std::shared_lock lock(mutex_);
    std::copy_if(ended_.begin(), ended_.end(), std::back_inserter(asked),
                 [](const Ended& one) { return one.end != nullptr && one.leaves_with == nullptr; });
  }
  std::erase_if(asked,
                [&](const Ended& one) { return driver_.query(one.end->event) == kNotReady; });
  const std::unique_lock lock(mutex_);
  std::erase_if(ended_, [&](const Ended& one) {
    return std::any_of(asked.begin(), asked.end(),
                       [&](const Ended& end) { return end.stream == one.stream; });
  });
}

// --- captures

bool ProgramStreams::set_capturing(StreamHandle handle, bool now) {
  const uint64_t key = key_of(handle).value_or(0);
  ContextHandle context = nullptr;
  if (now && driver_.context_of(handle, context) != kSuccess) context = nullptr;
  const std::lock_guard lock(captures_mutex_);
  const bool before = !capturing_.empty();
  if (now) {
    capturing_.insert_or_assign(key, context);
  } else {
    capturing_.erase(key);
  }
  captures_.store(capturing_.size());
  return before == capturing_.empty();
}

}  // namespace sealane::serve
