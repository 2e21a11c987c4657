// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The wires of a group, from the plan to the fabric: ranks of one host pass shared memory to each
// other (and a bell, if others are elsewhere), the rest open data connections that show a cookie
// from the session. join.cc drives it; what peers say comes through sessions, so it is believed,
// but checked; what data connections say is anybody's until the cookie is seen.
//
// Concurrency: one thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "comm/control.h"
#include "comm/endpoint.h"
#include "comm/options.h"
#include "comm/wire_plan.h"
#include "core/collective/choose.h"
#include "transport/fabric.h"
#include "transport/shm_fabric.h"
#include "transport/tcp_fabric.h"

namespace sealane {

class Wiring {
 public:
  static constexpr uint8_t kDataHello = 'D';
  static constexpr size_t kCookieBytes = 32;
  // kDataHello, rank (4), 1 for a broadcast connection, which of them, cookie.
  static constexpr size_t kDataHelloBytes = 7 + kCookieBytes;

  explicit Wiring(const JoinOptions& options);

  // Who is where: `hosts` by rank, and whether that is this one.
  struct Place {
    std::string host;
    bool local = false;
  };
  void plan(const std::vector<Place>& places);

  bool hosts_apart() const { return hosts_apart_; }
  std::string terms() const;  // what all ranks must agree on
  // Said before connections are made: later, one that finds no descriptor looks like a rank that
  // never came.
  Status check_descriptors() const;

  Status prepare_own();                               // shared memory and bell of this rank
  void offer(Control& control, uint32_t peer) const;  // what that rank needs of them

  Status handle_outbox(uint32_t from, std::optional<int> descriptor);
  Status handle_bell(uint32_t from, std::optional<int> descriptor);
  Status handle_cookie(uint32_t from, Bytes cookie, const Endpoint& endpoint, Instant deadline);
  // Dropped unless its cookie is right; the socket closes.
  void admit_data(Bytes hello, Socket socket);

  bool wired(uint32_t peer) const;

  uint32_t payload_bytes() const { return plan_.payload_bytes; }
  uint32_t ring_records() const;
  Topology topology() const { return {group_.one_host(), group_.most_on_a_host}; }
  std::unique_ptr<Fabric> build_fabric();  // once, when all are wired

 private:
  using Cookie = std::array<uint8_t, kCookieBytes>;
  struct Peer {
    bool local = false;
    Cookie cookie{};  // data connections from this peer must show it
    std::optional<SharedSegment> outbox;
    Socket bell;  // an eventfd, where some ranks share memory with this one and others do not
    TcpConnections data;
  };

  uint32_t size() const { return options_.self.size; }
  uint32_t rank() const { return options_.self.rank; }
  bool by_memory(uint32_t peer) const;
  bool shares_memory() const { return local_ranks_.size() > 1; }
  bool mixed() const { return shares_memory() && local_ranks_.size() < size(); }
  bool connected(const std::vector<Socket>& sockets) const;
  Socket* data_place(uint32_t peer, bool broadcast, uint32_t stream);
  WireShape shm_shape() const;
  WireShape tcp_shape() const;
  std::unique_ptr<ShmFabric> build_shm();
  std::unique_ptr<TcpFabric> build_tcp();

  const JoinOptions& options_;
  std::vector<Peer> peers_;
  std::vector<uint32_t> local_ranks_;  // those that share memory with this one, and itself
  GroupShape group_;
  WirePlan plan_;
  bool hosts_apart_ = false;
};

}  // namespace sealane
