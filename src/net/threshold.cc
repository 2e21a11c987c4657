// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/threshold.h"

#include "base/random.h"
#include "base/text.h"

namespace sealane::net {
namespace {

// How long further streams of somebody who has hung up may still be on their way.
constexpr Duration kLastStreams = std::chrono::seconds(1);

}  // namespace

Threshold::Threshold(std::shared_ptr<Network> network, Network::Crew& crew, uint64_t communicator)
    : network_(std::move(network)), crew_(crew), communicator_(communicator) {
  SystemRandom().fill(nonce_);
}

Result<std::shared_ptr<ReceiveEnd>> Threshold::take() {
  const std::lock_guard lock(mutex_);
  if (!ready_.empty()) {
    auto end = std::move(ready_.front());
    ready_.pop_front();
    return end;
  }
  if (failure_) return *failure_;
  const Instant now = SteadyClock().now();
  for (auto& [id, one] : gatherings_) {
    // Nobody serves the socket yet, so nobody else would notice.
    if (!one.hung_up && hung_up(one.sockets.at(0))) one.hung_up = now;
    if (one.hung_up && now - *one.hung_up > kLastStreams) {
      return peer_error(one.peer + " went away before its connection was complete");
    }
    if (now - one.since > network_->options().patience) {
      return peer_error(one.peer + " opened a connection and never finished it");
    }
  }
  return std::shared_ptr<ReceiveEnd>();
}

void Threshold::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = error;
}

void Threshold::greeted(const Hello& hello, const std::string& peer, std::optional<Key> secret,
                        Socket socket) {
  const std::lock_guard lock(mutex_);
  // A name that is in use is not a fresh one: whoever has it keeps it.
  if (closed_ || gatherings_.contains(hello.connection)) return;
  Gathering& one = gatherings_[hello.connection];
  one.hello = hello;
  one.peer = peer;
  one.secret = std::move(secret);
  one.since = SteadyClock().now();
  one.sockets.emplace(0, std::move(socket));
  for (Early& early : early_) {
    if (early.hello.connection != hello.connection) continue;
    join(one, early.hello, std::move(early.socket));
  }
  forget_early();
  finish(hello.connection);
}

void Threshold::joined(const Hello& hello, Socket socket) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (const auto found = gatherings_.find(hello.connection); found != gatherings_.end()) {
    join(found->second, hello, std::move(socket));
    return finish(hello.connection);
  }
  early_.push_back({hello, std::move(socket), SteadyClock().now()});
  forget_early();
}

// Dropped unless it is the connection's: the socket closes.
void Threshold::join(Gathering& one, const Hello& hello, Socket socket) {
  if (hello.stream >= one.hello.streams) return;
  if (one.secret && !constant_time_equal(hello.pair, join_proof(*one.secret, hello.stream))) return;
  one.sockets.try_emplace(hello.stream, std::move(socket));
}

// Those that were handed on, that are too many, that have waited for as long as a greeting may.
void Threshold::forget_early() {
  std::erase_if(early_, [&](const Early& early) {
    return !early.socket.valid() ||
           SteadyClock().now() - early.since > network_->options().patience;
  });
  while (early_.size() > kEarlyMax) early_.pop_front();
}

void Threshold::finish(const Nonce& id) {
  const auto found = gatherings_.find(id);
  Gathering& one = found->second;
  if (one.sockets.size() < one.hello.streams) return;
  const uint32_t chunk = one.hello.chunk_bytes;
  const auto key_of = [&](uint8_t stream, bool from_connector) {
    return one.secret ? std::optional(stream_key(*one.secret, stream, from_connector))
                      : std::nullopt;
  };
  auto end = std::make_shared<ReceiveEnd>(one.peer, chunk);
  std::vector<std::shared_ptr<ReceiveStream>> streams;
  for (uint8_t i = 0; i < one.hello.streams; ++i) {
    streams.push_back(std::make_shared<ReceiveStream>(std::move(one.sockets[i]), i, crew_.next(),
                                                      end, network_->engine(), key_of(i, true),
                                                      key_of(i, false), chunk));
  }
  end->attach(streams);
  for (const auto& stream : streams) stream->start();
  gatherings_.erase(found);
  ready_.push_back(std::move(end));
}

void Threshold::close() {
  std::deque<std::shared_ptr<ReceiveEnd>> untaken;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    untaken.swap(ready_);
    gatherings_.clear();
    early_.clear();
  }
  for (const auto& end : untaken) end->close();
}

}  // namespace sealane::net
