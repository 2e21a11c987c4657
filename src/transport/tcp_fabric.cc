// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "transport/tcp_fabric.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace sealane {
namespace {

constexpr uint32_t kLengthBytes = 4;
constexpr uint32_t kReceiveRecords = 4;  // what a connection's receive buffer has room for

}  // namespace

struct TcpFabric::Staging {
  Staging(uint32_t count_, uint32_t slot_bytes_)
      : count(count_),
        slot_bytes(slot_bytes_),
        memory(static_cast<uint8_t*>(std::aligned_alloc(64, size_t{count_} * slot_bytes_)),
               std::free) {
    SEALANE_CHECK(memory != nullptr, "out of memory");
  }

  uint8_t* record(uint64_t number) const {
    return memory.get() + number % count * slot_bytes + WireShape::kRecordAt;
  }
  // What goes on the wire: length and record, side by side.
  Bytes frame(uint64_t number) const {
    const uint8_t* at = record(number) - kLengthBytes;
    return {at, kLengthBytes + load_le<uint32_t>(at)};
  }
  uint64_t sent_by_all() const;

  uint32_t count;
  uint32_t slot_bytes;
  std::unique_ptr<uint8_t, void (*)(void*)> memory;
  uint64_t committed = 0;
  std::vector<Connection*> readers;
};

struct TcpFabric::Connection {
  Socket socket;
  Staging* out = nullptr;
  uint64_t sent = 0;      // records of `out` sent whole
  size_t sent_bytes = 0;  // of the next one
  bool can_send = true;   // until the kernel says otherwise
  bool can_receive = true;
  bool gone = false;
  std::vector<uint8_t> buffer;  // what arrived: [taken, filled)
  size_t taken = 0;
  size_t filled = 0;
};

uint64_t TcpFabric::Staging::sent_by_all() const {
  uint64_t lowest = committed;
  for (const Connection* reader : readers) {
    if (!reader->gone) lowest = std::min(lowest, reader->sent);
  }
  return lowest;
}

TcpFabric::TcpFabric(const WireShape& shape, std::vector<TcpConnections> connections)
    : shape_(shape),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      staging_(shape.size + 1),
      connections_(size_t{2} * shape.size) {
  staging_[shape_.size] = std::make_unique<Staging>(shape_.broadcast_slots, shape_.slot_bytes());
  for (uint32_t peer = 0; peer < shape_.size; ++peer) {
    if (peer == shape_.rank) continue;
    staging_[peer] = std::make_unique<Staging>(shape_.pair_slots, shape_.slot_bytes());
    for (const bool broadcast : {false, true}) {
      auto made = std::make_unique<Connection>();
      made->socket = std::move(broadcast ? connections[peer].broadcast : connections[peer].pair);
      made->out = staging_[broadcast ? shape_.size : peer].get();
      made->out->readers.push_back(made.get());
      made->buffer.resize(size_t{kReceiveRecords} * (kLengthBytes + shape_.record_bytes));
      epoll_event event{};
      event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
      event.data.ptr = made.get();
      epoll_ctl(epoll_.descriptor(), EPOLL_CTL_ADD, made->socket.descriptor(), &event);
      connections_[peer + (broadcast ? shape_.size : 0)] = std::move(made);
    }
  }
}

TcpFabric::~TcpFabric() = default;

size_t TcpFabric::memory_bytes() const {
  size_t bytes = 0;
  for (const auto& staging : staging_) {
    if (staging != nullptr) bytes += size_t{staging->count} * staging->slot_bytes;
  }
  for (const auto& connection : connections_) {
    if (connection != nullptr) bytes += connection->buffer.size();
  }
  return bytes;
}

TcpFabric::Connection* TcpFabric::connection(uint32_t peer, bool broadcast) const {
  return connections_[peer + (broadcast ? shape_.size : 0)].get();
}

bool TcpFabric::lost(uint32_t peer) const {
  return connection(peer, false)->gone || connection(peer, true)->gone;
}

// ---- Sending ----

bool TcpFabric::writable(uint32_t wire) {
  const Staging& out = staging(wire);
  return out.committed - out.sent_by_all() < out.count;
}

MutableBytes TcpFabric::slot(uint32_t wire) {
  Staging& out = staging(wire);
  return {out.record(out.committed), shape_.record_bytes};
}

void TcpFabric::commit(uint32_t wire, size_t bytes) {
  Staging& out = staging(wire);
  store_le(out.record(out.committed) - kLengthBytes, static_cast<uint32_t>(bytes));
  ++out.committed;
  for (Connection* reader : out.readers) send_some(*reader);
}

void TcpFabric::send_some(Connection& connection) {
  while (!connection.gone && connection.can_send && connection.sent < connection.out->committed) {
    const Bytes rest = connection.out->frame(connection.sent).subspan(connection.sent_bytes);
    const ptrdiff_t count = connection.socket.send(rest);
    if (count < 0) {
      connection.gone = true;
      return;
    }
    connection.sent_bytes += static_cast<size_t>(count);
    if (static_cast<size_t>(count) < rest.size()) {
      connection.can_send = false;
    } else {
      ++connection.sent;
      connection.sent_bytes = 0;
    }
  }
}

bool TcpFabric::flush() {
  bool everything = true;
  for (const auto& connection : connections_) {
    if (connection == nullptr) continue;
    send_some(*connection);
    everything = everything && (connection->gone || connection->sent == connection->out->committed);
  }
  return everything;
}

// ---- Receiving ----

void TcpFabric::receive_some(Connection& connection) {
  const size_t whole = kLengthBytes + shape_.record_bytes;
  if (connection.buffer.size() - connection.taken < whole) {
    std::memmove(connection.buffer.data(), connection.buffer.data() + connection.taken,
                 connection.filled - connection.taken);
    connection.filled -= connection.taken;
    connection.taken = 0;
  }
  const MutableBytes room = MutableBytes(connection.buffer).subspan(connection.filled);
  const ptrdiff_t count = connection.socket.receive(room);
  if (count < 0) connection.gone = true;
  if (count <= 0) {
    connection.can_receive = false;
    return;
  }
  connection.filled += static_cast<size_t>(count);
  // A short count means that the kernel has nothing more, and an event will tell when it has.
  connection.can_receive = static_cast<size_t>(count) == room.size();
}

bool TcpFabric::readable(uint32_t wire) {
  Connection& from = *connections_[wire];
  const auto whole_record = [&] {
    const size_t available = from.filled - from.taken;
    if (available < kLengthBytes) return false;
    const size_t length =
        std::min(load_le<uint32_t>(&from.buffer[from.taken]), shape_.record_bytes);
    return available >= kLengthBytes + length;
  };
  if (whole_record()) return true;
  while (from.can_receive) {
    receive_some(from);
    if (whole_record()) return true;
  }
  return false;
}

// A length that is too long is cut; the record's own header then gives the lie away.
Bytes TcpFabric::front(uint32_t wire) {
  const Connection& from = *connections_[wire];
  const uint8_t* at = from.buffer.data() + from.taken;
  return {at + kLengthBytes, std::min(load_le<uint32_t>(at), shape_.record_bytes)};
}

void TcpFabric::pop(uint32_t wire) {
  Connection& from = *connections_[wire];
  from.taken += kLengthBytes + front(wire).size();
  if (from.taken == from.filled) from.taken = from.filled = 0;
}

// ---- Waiting ----

void TcpFabric::wait(Duration at_most) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.descriptor(), events.data(), events.size(),
                               static_cast<int>(std::max<int64_t>(ms, 0)));
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    auto& connection = *static_cast<Connection*>(event.data.ptr);
    if ((event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
      connection.can_receive = true;
    }
    if ((event.events & EPOLLOUT) != 0) {
      connection.can_send = true;
      send_some(connection);
    }
  }
}

}  // namespace sealane
