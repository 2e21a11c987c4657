// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Wires through TCP: two connections per pair of ranks, one for the pair's records and one for
// broadcast records, so that neither kind waits behind the other. A record is staged once and
// written from there to every connection it goes to. On the wire: length (4 bytes), record.
//
// Reading never depends on writing: each connection has its own buffers, so two ranks that both
// send first do not wait for each other. Edge-triggered epoll.
#pragma once

#include <memory>
#include <vector>

#include "transport/fabric.h"
#include "transport/socket.h"

namespace sealane {

struct TcpConnections {
  Socket pair;
  Socket broadcast;
};

class TcpFabric final : public Fabric {
 public:
  // `connections[r]` are those with rank r; the own entry is empty.
  TcpFabric(const WireShape& shape, std::vector<TcpConnections> connections);
  ~TcpFabric() override;

  bool writable(uint32_t wire) override;
  MutableBytes slot(uint32_t wire) override;
  void commit(uint32_t wire, size_t bytes) override;
  bool readable(uint32_t wire) override;
  Bytes front(uint32_t wire) override;
  void pop(uint32_t wire) override;
  Duration patience() override { return Duration(0); }
  void prepare_wait() override {}
  void wait(Duration at_most) override;
  bool flush() override;
  bool lost(uint32_t peer) const override;
  size_t memory_bytes() const override;

 private:
  struct Staging;  // the slots of one out wire
  struct Connection;

  Connection* connection(uint32_t peer, bool broadcast) const;
  Staging& staging(uint32_t wire) { return *staging_[wire]; }
  void send_some(Connection& connection);
  void receive_some(Connection& connection);

  WireShape shape_;
  Socket epoll_;
  std::vector<std::unique_ptr<Staging>> staging_;         // per out wire; none for the own rank
  std::vector<std::unique_ptr<Connection>> connections_;  // per in wire; none for the own rank
};

}  // namespace sealane
