// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The program's streams, and the events that mark places in them.

#include <pthread.h>

#include "serve/runtime.h"

namespace sealane::serve {
namespace {

bool is_default(StreamHandle stream) {
  return reinterpret_cast<uintptr_t>(stream) <= kPerThreadStream;
}

bool is_legacy(StreamHandle stream) { return reinterpret_cast<uintptr_t>(stream) <= kLegacyStream; }

}  // namespace

// Gives the event back to its pool with the last who looks at it.
struct Runtime::Lease final : EventLease {
  Lease(Runtime& from, ContextHandle of) : owner(from), context(of) {}
  ~Lease() override { owner.give_event(context, event); }
  Runtime& owner;
  const ContextHandle context;
};

void Runtime::touch(StreamHandle handle) {
  if (is_legacy(handle)) {
    legacy_epoch_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (const StreamPointer state = known_stream(handle)) {
    state->touched.store(true, std::memory_order_relaxed);
  }
}

void Runtime::set_capturing(StreamHandle handle, bool now) {
  ContextHandle context = nullptr;
  if (is_default(handle)) driver_.context_of(handle, context);
  const std::lock_guard lock(captures_mutex_);
  const bool before = !capturing_.empty();
  if (now) {
    capturing_.insert(key_of(handle, context));
  } else {
    capturing_.erase(key_of(handle, context));
  }
  captures_.store(capturing_.size());
  if (before == !capturing_.empty()) return;
  const std::lock_guard machine(under_way_.mutex);
  under_way_.copies.handle_capture(!before);
}

uint64_t Runtime::key_of(StreamHandle stream, ContextHandle context) const {
  if (!is_default(stream)) return reinterpret_cast<uint64_t>(stream);
  uint64_t key = reinterpret_cast<uint64_t>(context) ^ 0x5ea1;
  if (!is_legacy(stream)) key ^= static_cast<uint64_t>(pthread_self()) << 1 | 1;
  return key;
}

StreamPointer Runtime::known_stream(StreamHandle handle) {
  ContextHandle context = nullptr;
  if (is_default(handle) && driver_.context_of(handle, context) != kSuccess) return nullptr;
  const std::shared_lock lock(streams_mutex_);
  const auto found = streams_.find(key_of(handle, context));
  return found != streams_.end() ? found->second : nullptr;
}

StreamPointer Runtime::stream(StreamHandle handle) {
  if (StreamPointer known = known_stream(handle)) return known;
  auto made = std::make_shared<Stream>();
  made->key = streams_made_.fetch_add(1) + 1;
  made->legacy = is_legacy(handle);
  if (driver_.context_of(handle, made->context) != kSuccess) return nullptr;
  if (driver_.device_of(made->context, made->device) != kSuccess) return nullptr;
  const std::unique_lock lock(streams_mutex_);
  return streams_.emplace(key_of(handle, made->context), std::move(made)).first->second;
}

void Runtime::forget_stream(StreamHandle handle) {
  set_capturing(handle, false);
  StreamPointer gone;
  {
    const std::unique_lock lock(streams_mutex_);
    const auto found = streams_.find(reinterpret_cast<uint64_t>(handle));
    if (found == streams_.end()) return;
    gone = std::move(found->second);
    streams_.erase(found);
  }
  std::vector<std::shared_ptr<const EventLease>> leases;  // let go without the lock
  leases.reserve(kLeasesMax);
  const std::lock_guard lock(under_way_.mutex);
  under_way_.copies.handle_stream_gone(gone->key);
  take_forgotten(under_way_, leases);
}

void Runtime::forget_context(ContextHandle context) {
  {
    const std::unique_lock lock(streams_mutex_);
    std::erase_if(streams_, [&](const auto& entry) { return entry.second->context == context; });
  }
  device_memory_.remove_if([&](const auto& entry) { return entry.what.context == context; });
  host_memory_.remove_if([&](const auto& entry) { return entry.what.context == context; });
  {
    std::vector<std::shared_ptr<const EventLease>> leases;
    leases.reserve(kLeasesMax);
    const std::lock_guard lock(under_way_.mutex);
    under_way_.copies.handle_context_gone(reinterpret_cast<uint64_t>(context));
    take_forgotten(under_way_, leases);
    any_failed_.store(under_way_.copies.any_failed());
  }
  const std::lock_guard lock(events_mutex_);
  events_.erase(context);  // the driver destroyed them
}

std::shared_ptr<Runtime::Lease> Runtime::take_event(ContextHandle context) {
  auto lease = std::make_shared<Lease>(*this, context);
  {
    const std::lock_guard lock(events_mutex_);
    auto& free = events_[context];
    if (!free.empty()) {
      lease->event = free.back();
      free.pop_back();
      return lease;
    }
  }
  return driver_.make_event(context, lease->event) == kSuccess ? lease : nullptr;
}

void Runtime::give_event(ContextHandle context, EventHandle event) {
  if (event == nullptr) return;
  try {
    const std::lock_guard lock(events_mutex_);
    events_[context].push_back(event);
  } catch (const std::exception&) {  // leases end in destructors
    driver_.drop_event(event);
  }
}

Code Runtime::record(const Call& call, const RecordEvent& record) {
  const auto lease = take_event(call.stream->context);
  if (!lease) return kNotSupported;
  const Code code = driver_.record(lease->event, call.asked.front().stream);
  if (code != kSuccess) return code;
  const std::lock_guard lock(under_way_.mutex);
  under_way_.events[record.event] = lease;
  return kSuccess;
}

}  // namespace sealane::serve
