// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/wiring.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <map>

#include "base/random.h"
#include "base/text.h"
#include "base/try.h"
#include "transport/mixed_fabric.h"

namespace sealane {
namespace {

uint32_t cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 1;
}

}  // namespace

Wiring::Wiring(const JoinOptions& options) : options_(options), peers_(options.self.size) {
  SystemRandom random;
  for (Peer& peer : peers_) random.fill(peer.cookie);
}

// ---- The plan ----

void Wiring::plan(const std::vector<Place>& places) {
  group_.size = size();
  std::map<std::string, uint32_t> ranks_of;
  for (uint32_t peer = 0; peer < size(); ++peer) {
    peers_[peer].local = places[peer].local;
    ++ranks_of[places[peer].host];
    if (places[peer].local) local_ranks_.push_back(peer);
  }
  const bool one_machine = local_ranks_.size() == size();
  if (options_.transport == TransportKind::tcp) {
    local_ranks_ = {rank()};
    group_.most_on_a_host = 1;
  } else {
    for (const auto& [host, ranks] : ranks_of) {
      group_.most_on_a_host = std::max(group_.most_on_a_host, ranks);
    }
  }
  hosts_apart_ = !group_.one_host();
  // One connection fills a loopback; between hosts, several take several ways.
  group_.streams = options_.tcp_streams != 0 ? options_.tcp_streams : (one_machine ? 1 : 2);
  plan_ = plan_wires(group_, options_.record_bytes);
}

uint32_t Wiring::ring_records() const {
  if (group_.one_host()) return plan_.shm.pair_slots;
  return group_.most_on_a_host == 1 ? plan_.tcp.pair_slots : plan_.ring_records();
}

std::string Wiring::terms() const {
  return concat("mode=", to_string(options_.mode), " record=", plan_.payload_bytes,
                " hosts=", plan_.shm.size, "/", size(), " streams=", group_.streams,
                " algorithm=", to_string(options_.algorithm));
}

bool Wiring::by_memory(uint32_t peer) const {
  return peers_[peer].local && options_.transport != TransportKind::tcp;
}

Status Wiring::check_descriptors() const {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  std::error_code ignored;
  const std::filesystem::directory_iterator open("/proc/self/fd", ignored);
  auto needed = static_cast<uint64_t>(std::distance(begin(open), end(open)));
  for (uint32_t peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    if (peer > rank()) ++needed;  // its control connection is yet to come
    needed += by_memory(peer) ? (mixed() ? 2 : 1) : 2 * group_.streams;
  }
  if (needed <= limit.rlim_cur) return {};
  return usage_error(concat("a group of ", size(), " ranks needs ", needed,
                            " open files in this process and ", limit.rlim_cur,
                            " are allowed: raise the limit (ulimit -n)"));
}

// ---- What this rank offers ----

Status Wiring::prepare_own() {
  if (shares_memory()) {
    SEALANE_LET(auto outbox, SharedSegment::create(ShmFabric::outbox_bytes(shm_shape())));
    peers_[rank()].outbox = std::move(outbox);
  }
  if (mixed()) {
    peers_[rank()].bell = Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!peers_[rank()].bell.valid()) return io_error("cannot make an eventfd", errno);
  }
  return {};
}

void Wiring::offer(Control& control, uint32_t peer) const {
  if (by_memory(peer)) {
    control.send(peer, ControlKind::outbox, {}, peers_[rank()].outbox->descriptor());
    if (mixed()) control.send(peer, ControlKind::bell, {}, peers_[rank()].bell.descriptor());
  } else if (peer > rank()) {
    control.send(peer, ControlKind::cookie, peers_[peer].cookie);
  }
}

// ---- What the others offer ----

Status Wiring::handle_outbox(uint32_t from, std::optional<int> descriptor) {
  if (!descriptor) return peer_error(concat("rank ", from, " passed no shared memory"));
  auto segment = SharedSegment::adopt(*descriptor, ShmFabric::outbox_bytes(shm_shape()));
  if (!segment) {
    return Error{segment.error().kind, concat("rank ", from, ": ", segment.error().message)};
  }
  peers_[from].outbox = std::move(*segment);
  return {};
}

Status Wiring::handle_bell(uint32_t from, std::optional<int> descriptor) {
  if (!descriptor) return peer_error(concat("rank ", from, " passed no bell"));
  peers_[from].bell = Socket(*descriptor);
  return {};
}

Status Wiring::handle_cookie(uint32_t from, Bytes cookie, const Endpoint& endpoint,
                             Instant deadline) {
  if (cookie.size() != kCookieBytes) return peer_error("malformed cookie");
  for (const bool broadcast : {false, true}) {
    for (uint32_t stream = 0; stream < group_.streams; ++stream) {
      auto socket = connect_to(endpoint, peers_[from].local, true, deadline);
      if (!socket) {
        return Error{socket.error().kind, concat("rank ", from, ": ", socket.error().message)};
      }
      std::array<uint8_t, kDataHelloBytes> hello{};
      hello[0] = kDataHello;
      store_le(&hello[1], rank());
      hello[5] = broadcast ? 1 : 0;
      hello[6] = static_cast<uint8_t>(stream);
      std::copy(cookie.begin(), cookie.end(), hello.begin() + 7);
      if (socket->send(hello) != static_cast<ptrdiff_t>(hello.size())) {
        return peer_error(concat("rank ", from, " does not take a data connection"));
      }
      *data_place(from, broadcast, stream) = std::move(*socket);
    }
  }
  return {};
}

Socket* Wiring::data_place(uint32_t peer, bool broadcast, uint32_t stream) {
  TcpConnections& data = peers_[peer].data;
  std::vector<Socket>& sockets = broadcast ? data.broadcast : data.pair;
  if (stream >= group_.streams) return nullptr;
  sockets.resize(group_.streams);
  return &sockets[stream];
}

void Wiring::admit_data(Bytes hello, Socket socket) {
  const uint32_t peer = load_le<uint32_t>(&hello[1]);
  if (peer <= rank() || peer >= size()) return;
  if (!constant_time_equal(hello.subspan(7), peers_[peer].cookie)) return;
  Socket* place = data_place(peer, hello[5] != 0, hello[6]);
  if (place != nullptr && !place->valid()) *place = std::move(socket);
}

bool Wiring::wired(uint32_t peer) const {
  const Peer& one = peers_[peer];
  if (by_memory(peer)) return one.outbox.has_value() && (!mixed() || one.bell.valid());
  return connected(one.data.pair) && connected(one.data.broadcast);
}

bool Wiring::connected(const std::vector<Socket>& sockets) const {
  return sockets.size() == group_.streams &&
         std::all_of(sockets.begin(), sockets.end(), [](const Socket& s) { return s.valid(); });
}

// ---- The fabric ----

WireShape Wiring::shm_shape() const {
  WireShape shape = plan_.shm;
  shape.size = static_cast<uint32_t>(local_ranks_.size());
  shape.rank = static_cast<uint32_t>(std::find(local_ranks_.begin(), local_ranks_.end(), rank()) -
                                     local_ranks_.begin());
  return shape;
}

WireShape Wiring::tcp_shape() const {
  WireShape shape = plan_.tcp;
  shape.rank = rank();
  return shape;
}

std::unique_ptr<Fabric> Wiring::build_fabric() {
  auto shm = shares_memory() ? build_shm() : nullptr;
  auto tcp = local_ranks_.size() < size() ? build_tcp() : nullptr;
  if (tcp == nullptr) return shm;
  if (shm == nullptr) return tcp;
  return std::make_unique<MixedFabric>(tcp_shape(), local_ranks_, std::move(shm), std::move(tcp),
                                       std::move(peers_[rank()].bell));
}

std::unique_ptr<ShmFabric> Wiring::build_shm() {
  std::vector<SharedSegment> outboxes;
  std::vector<Socket> bells;
  for (const uint32_t local : local_ranks_) {
    outboxes.push_back(std::move(*peers_[local].outbox));
    if (mixed() && local != rank()) bells.push_back(std::move(peers_[local].bell));
    if (mixed() && local == rank()) bells.emplace_back();  // nobody wakes himself
  }
  return std::make_unique<ShmFabric>(shm_shape(), std::move(outboxes),
                                     local_ranks_.size() > cores(), std::move(bells));
}

std::unique_ptr<TcpFabric> Wiring::build_tcp() {
  std::vector<TcpConnections> connections(size());
  for (uint32_t peer = 0; peer < size(); ++peer) connections[peer] = std::move(peers_[peer].data);
  return std::make_unique<TcpFabric>(tcp_shape(), std::move(connections));
}

}  // namespace sealane
