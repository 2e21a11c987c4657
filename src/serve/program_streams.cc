// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/program_streams.h"

#include <pthread.h>

#include <utility>

namespace sealane::serve {
namespace {

bool is_default(StreamHandle stream) {
  return reinterpret_cast<uintptr_t>(stream) <= kPerThreadStream;
}

bool is_legacy(StreamHandle stream) { return reinterpret_cast<uintptr_t>(stream) <= kLegacyStream; }

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

StreamPointer ProgramStreams::forget(StreamHandle handle) {
  const std::unique_lock lock(mutex_);
  const auto found = streams_.find(reinterpret_cast<uint64_t>(handle));
  if (found == streams_.end()) return nullptr;
  StreamPointer gone = std::move(found->second);
  streams_.erase(found);
  return gone;
}

bool ProgramStreams::forget_context(ContextHandle context) {
  {
    const std::unique_lock lock(mutex_);
    std::erase_if(streams_, [&](const auto& entry) { return entry.second->context == context; });
  }
  const std::lock_guard lock(captures_mutex_);
  const auto gone =
      std::erase_if(capturing_, [&](const auto& entry) { return entry.second == context; });
  captures_.store(capturing_.size());
  return gone > 0 && capturing_.empty();
}

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
