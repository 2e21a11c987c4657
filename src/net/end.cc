// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/end.h"

#include <algorithm>

#include "base/text.h"
#include "net/device_memory.h"
#include "net/stream.h"

namespace sealane::net {
namespace {

// What is sealed where it is sent from: two microseconds of AES, in a thread that polls for others.
constexpr size_t kSmallBytes = 16 << 10;

}  // namespace

Error peer_gone() { return peer_error("closed the connection: it ended, or was killed"); }

End::End(std::string peer) : peer_(std::move(peer)) {
  for (Request& request : requests_) request.end = this;
}

Error End::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_.value_or(internal_error("no failure"));
}

void End::fail(const Error& error) { fail_as({error.kind, concat(peer_, ": ", error.message)}); }

void End::fail_as(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = error;
  }
  failed_.store(true);
  kick_all();
}

bool End::over() {
  if (!failed() && process_exits()) fail_as(exiting_error());
  return failed();
}

std::optional<Error> End::told_failure() const {
  if (serving_.load() > 0) return std::nullopt;
  return failure();
}

Request* End::take_request(void* data, size_t bytes, std::shared_ptr<const DeviceMemory> device) {
  for (Request& request : requests_) {
    if (request.state.load(std::memory_order_acquire) != Request::State::free) continue;
    request.data = static_cast<uint8_t*>(data);
    request.capacity = bytes;
    request.bytes = 0;
    request.device = std::move(device);
    request.chunks_done = 0;
    request.chunks = 0;
    request.state.store(Request::State::posted, std::memory_order_relaxed);
    return &request;
  }
  return nullptr;
}

Result<Request*> End::refusal() const {
  if (const auto why = told_failure()) return *why;
  return static_cast<Request*>(nullptr);
}

Result<std::optional<size_t>> End::test(Request& request) {
  if (inherited()) return of_the_parent();
  // What is done is done, also where something behind it has failed.
  if (request.state.load(std::memory_order_acquire) == Request::State::done) {
    const size_t bytes = request.bytes;
    request.device.reset();  // its owner may have let go of it, and of its context
    request.state.store(Request::State::free, std::memory_order_release);
    return std::optional<size_t>(bytes);
  }
  if (over()) {
    if (const auto why = told_failure()) return *why;
  }
  return std::optional<size_t>();
}

// ---- Sending ----

SendEnd::~SendEnd() = default;

Result<Request*> SendEnd::send(const void* data, size_t bytes,
                               std::shared_ptr<const DeviceMemory> device) {
  if (inherited()) return of_the_parent();
  if (over()) return refusal();
  const uint64_t count = std::max<uint64_t>(1, (bytes + chunk_bytes_ - 1) / chunk_bytes_);
  uint64_t first = 0;
  Request* request = nullptr;
  {
    std::unique_lock lock(mutex_);
    if (ended_) {
      lock.unlock();
      fail(peer_gone());
      return refusal();
    }
    request = take_request(const_cast<void*>(data), bytes, std::move(device));
    if (request == nullptr) return request;
    queues_.resize(streams_.size());
    request->number = messages_++;
    request->chunks = static_cast<uint32_t>(count);
    first = chunks_;
    for (uint32_t index = 0; index < count; ++index) {
      const size_t from = size_t{index} * chunk_bytes_;
      const size_t length = std::min<size_t>(chunk_bytes_, bytes - from);
      queues_[chunks_++ % streams_.size()].push_back(
          {request, request->number, index, index + 1 == count, {request->data + from, length}});
    }
  }
  const bool small = bytes <= kSmallBytes && request->device == nullptr;
  if (small && streams_[first % streams_.size()]->send_here()) return request;
  for (uint64_t i = 0; i < std::min<uint64_t>(count, streams_.size()); ++i) {
    streams_[(first + i) % streams_.size()]->kick();
  }
  return request;
}

bool SendEnd::waits_alone(uint8_t stream) const {
  const std::lock_guard lock(mutex_);
  return queues_[stream].size() == 1;
}

std::optional<Chunk> SendEnd::next_chunk(uint8_t stream) {
  const std::lock_guard lock(mutex_);
  if (joining_ > 0 || stream >= queues_.size() || queues_[stream].empty()) return std::nullopt;
  const Chunk chunk = queues_[stream].front();
  queues_[stream].pop_front();
  return chunk;
}

void SendEnd::stream_joined() {
  {
    const std::lock_guard lock(mutex_);
    if (--joining_ > 0) return;
  }
  kick_all();
}

void SendEnd::chunk_sent(const Chunk& chunk) {
  const std::lock_guard lock(mutex_);
  Request& request = *chunk.request;
  request.bytes += chunk.bytes.size();
  if (++request.chunks_done == request.chunks) {
    request.state.store(Request::State::done, std::memory_order_release);
  }
}

void SendEnd::stream_ended(uint8_t stream, bool under_way) {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    under_way = under_way || (stream < queues_.size() && !queues_[stream].empty());
  }
  if (under_way) fail(peer_gone());
}

void SendEnd::kick_all() {
  for (const auto& stream : streams_) stream->kick();
}

void SendEnd::close() {
  if (inherited()) return;
  for (const auto& stream : streams_) stream->close();
}

// ---- Receiving ----

ReceiveEnd::~ReceiveEnd() = default;

Result<Request*> ReceiveEnd::receive(void* data, size_t bytes,
                                     std::shared_ptr<const DeviceMemory> device) {
  if (inherited()) return of_the_parent();
  if (over()) return refusal();
  Request* request = nullptr;
  {
    std::unique_lock lock(mutex_);
    // Its place is free again when the message kRequestsMax before it has been given back.
    Request*& place = by_number_[messages_ % kRequestsMax];
    if (place != nullptr && place->number + kRequestsMax == messages_ &&
        place->state.load(std::memory_order_acquire) != Request::State::free) {
      return request;
    }
    request = take_request(data, bytes, std::move(device));
    if (request == nullptr) return request;
    request->number = messages_++;
    place = request;
    if (waits_in_vain()) {
      lock.unlock();
      fail(peer_gone());
      return refusal();
    }
  }
  for (const auto& stream : streams_) {
    if (stream->stalled()) stream->kick();
  }
  return request;
}

Request* ReceiveEnd::posted(uint64_t message) {
  if (message >= messages_) return nullptr;
  Request* request = by_number_[message % kRequestsMax];
  const bool waits = request != nullptr && request->number == message &&
                     request->state.load(std::memory_order_relaxed) == Request::State::posted;
  return waits ? request : nullptr;
}

Result<std::optional<ReceiveEnd::Place>> ReceiveEnd::place(uint64_t message, uint32_t index,
                                                           uint32_t bytes) {
  const std::lock_guard lock(mutex_);
  if (message >= messages_) return std::optional<Place>();
  Request* request = posted(message);
  if (request == nullptr) return peer_error("sent more of a message than the message had");
  const uint64_t from = uint64_t{index} * chunk_bytes_;
  if (bytes > chunk_bytes_ || from + bytes > request->capacity) {
    return peer_error(concat("sent at least ", from + bytes, " bytes where ", request->capacity,
                             " were asked for"));
  }
  return std::optional<Place>({{request->data + from, bytes}, request->device.get()});
}

Status ReceiveEnd::chunk_received(uint64_t message, uint32_t index, uint32_t bytes, bool last) {
  const std::lock_guard lock(mutex_);
  Request* request = posted(message);
  if (request == nullptr) return peer_error("sent more of a message than the message had");
  const bool odd = (!last && bytes != chunk_bytes_) || (last && request->chunks != 0);
  ++request->chunks_done;
  if (last) request->chunks = index + 1;
  if (odd || (request->chunks != 0 && request->chunks_done > request->chunks)) {
    return peer_error("sent chunks of a message that contradict each other");
  }
  request->bytes += bytes;
  if (request->chunks_done == request->chunks) {
    request->state.store(Request::State::done, std::memory_order_release);
  }
  return {};
}

void ReceiveEnd::stream_brings_from(uint8_t stream, uint64_t message) {
  {
    const std::lock_guard lock(mutex_);
    brings_from_[stream] = message;
    if (!waits_in_vain()) return;
  }
  fail(peer_gone());
}

// A stream brings messages in order.
bool ReceiveEnd::waits_in_vain() const {
  return std::any_of(requests_.begin(), requests_.end(), [&](const Request& request) {
    return request.state.load(std::memory_order_relaxed) == Request::State::posted &&
           std::all_of(brings_from_.begin(), brings_from_.end(),
                       [&](uint64_t first) { return first > request.number; });
  });
}

void ReceiveEnd::kick_all() {
  for (const auto& stream : streams_) stream->kick();
}

void ReceiveEnd::close() {
  if (inherited()) return;
  for (const auto& stream : streams_) stream->close();
}

}  // namespace sealane::net
