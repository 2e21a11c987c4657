// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "transport/tcp_fabric.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "base/time.h"

namespace sealane {
namespace {

constexpr uint32_t kLengthBytes = 4;
constexpr Duration kLeaveMax = std::chrono::seconds(1);  // then the kernel goes on alone

size_t receive_bytes(const WireShape& shape) {
  return size_t{shape.receive_records} * (kLengthBytes + shape.record_bytes);
}

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
  uint64_t next = 0;      // the record of `out` it sends next
  uint32_t stride = 1;    // from one of its records to the following
  size_t sent_bytes = 0;  // of that record
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
    if (!reader->gone) lowest = std::min(lowest, reader->next);
  }
  return lowest;
}

TcpFabric::TcpFabric(const WireShape& shape, std::vector<TcpConnections> connections)
    : shape_(shape),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      staging_(shape.size + 1),
      inlets_(size_t{2} * shape.size) {
  staging_[shape_.size] = std::make_unique<Staging>(shape_.broadcast_slots, shape_.slot_bytes());
  for (uint32_t peer = 0; peer < shape_.size; ++peer) {
    if (connections[peer].pair.empty()) continue;
    staging_[peer] = std::make_unique<Staging>(shape_.pair_slots, shape_.slot_bytes());
    connect(peer, std::move(connections[peer].pair), *staging_[peer]);
    connect(peer + shape_.size, std::move(connections[peer].broadcast), *staging_[shape_.size]);
  }
}

// What this rank has sent can be received after it has left, also if others had sent it something
// that it never took: that is read and dropped, for else closing would reset the connection.
TcpFabric::~TcpFabric() {
  std::vector<const Socket*> open;
  for (const Inlet& inlet : inlets_) {
    for (const auto& connection : inlet.streams) {
      if (!connection->socket.valid()) continue;  // a child's
      connection->socket.end_sending();
      open.push_back(&connection->socket);
    }
  }
  const Instant deadline = SteadyClock().now() + kLeaveMax;
  while (true) {
    std::erase_if(open, [](const Socket* socket) { return socket->all_arrived(); });
    if (open.empty() || SteadyClock().now() >= deadline) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void TcpFabric::connect(uint32_t wire, std::vector<Socket> sockets, Staging& out) {
  for (uint32_t stream = 0; stream < sockets.size(); ++stream) {
    auto made = std::make_unique<Connection>();
    made->socket = std::move(sockets[stream]);
    made->out = &out;
    made->next = stream;
    made->stride = static_cast<uint32_t>(sockets.size());
    made->buffer.resize(receive_bytes(shape_));
    out.readers.push_back(made.get());
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.ptr = made.get();
    epoll_ctl(epoll_.descriptor(), EPOLL_CTL_ADD, made->socket.descriptor(), &event);
    inlets_[wire].streams.push_back(std::move(made));
  }
}

void TcpFabric::watch(int event_descriptor) {
  watched_ = event_descriptor;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  epoll_ctl(epoll_.descriptor(), EPOLL_CTL_ADD, event_descriptor, &event);
}

size_t TcpFabric::memory_bytes(const WireShape& shape, uint32_t streams) {
  const size_t peers = shape.size - 1;
  return (peers * shape.pair_slots + shape.broadcast_slots) * shape.slot_bytes() +
         peers * 2 * streams * receive_bytes(shape);
}

size_t TcpFabric::memory_bytes() const {
  size_t bytes = 0;
  for (const auto& staging : staging_) {
    if (staging != nullptr) bytes += size_t{staging->count} * staging->slot_bytes;
  }
  for (const Inlet& inlet : inlets_) bytes += inlet.streams.size() * receive_bytes(shape_);
  return bytes;
}

TcpFabric::Connection& TcpFabric::next_in(uint32_t wire) const {
  const Inlet& inlet = inlets_[wire];
  return *inlet.streams[inlet.received % inlet.streams.size()];
}

bool TcpFabric::lost(uint32_t peer) const {
  for (const uint32_t wire : {peer, peer + shape_.size}) {
    for (const auto& connection : inlets_[wire].streams) {
      if (connection->gone) return true;
    }
  }
  return false;
}

bool TcpFabric::behind(uint32_t peer) const {
  for (const uint32_t wire : {peer, peer + shape_.size}) {
    for (const auto& connection : inlets_[wire].streams) {
      if (!connection->gone && connection->next < connection->out->committed) return true;
    }
  }
  return false;
}

// ---- Sending ----

// The kernel takes for ever what is sent to a rank that is gone: nobody would notice.
bool TcpFabric::writable(uint32_t wire) {
  if (wire < shape_.size && lost(wire)) return false;
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
  while (!connection.gone && connection.can_send && connection.next < connection.out->committed) {
    const Bytes rest = connection.out->frame(connection.next).subspan(connection.sent_bytes);
    const ptrdiff_t count = connection.socket.send(rest);
    if (count < 0) {
      connection.gone = true;
      return;
    }
    connection.sent_bytes += static_cast<size_t>(count);
    if (static_cast<size_t>(count) < rest.size()) {
      connection.can_send = false;
    } else {
      connection.next += connection.stride;
      connection.sent_bytes = 0;
    }
  }
}

bool TcpFabric::flush() {
  bool everything = true;
  for (const Inlet& inlet : inlets_) {
    for (const auto& connection : inlet.streams) {
      send_some(*connection);
      everything =
          everything && (connection->gone || connection->next >= connection->out->committed);
    }
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
  // Not beyond one record of full size: then records end where reads end, nothing has to be moved,
  // and the same cached bytes serve for the next.
  const size_t wanted = whole - (connection.filled - connection.taken);
  const MutableBytes room = MutableBytes(connection.buffer).subspan(connection.filled, wanted);
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
  Connection& from = next_in(wire);
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
  const Connection& from = next_in(wire);
  const uint8_t* at = from.buffer.data() + from.taken;
  return {at + kLengthBytes, std::min(load_le<uint32_t>(at), shape_.record_bytes)};
}

void TcpFabric::pop(uint32_t wire) {
  Connection& from = next_in(wire);
  from.taken += kLengthBytes + front(wire).size();
  if (from.taken == from.filled) from.taken = from.filled = 0;
  ++inlets_[wire].received;
}

// ---- Waiting ----

void TcpFabric::wait(Duration at_most) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.descriptor(), events.data(), events.size(),
                               static_cast<int>(std::max<int64_t>(ms, 0)));
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.ptr == nullptr) {
      uint64_t rings = 0;
      static_cast<void>(!read(watched_, &rings, sizeof rings));
      continue;
    }
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
