// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Wires through TCP: the pair's records and broadcast records each have connections of their own,
// so that neither kind waits behind the other. Either may have several, used in turn: record n of a
// wire travels on connection n modulo their number, so no order has to be restored. A record is
// staged once and written from there to every connection it goes to. On the wire: length (4 bytes),
// record.
//
// Reading never depends on writing: each connection has its own buffers, so two ranks that both
// send first do not wait for each other. Edge-triggered epoll.
#pragma once

#include <memory>
#include <vector>

#include "transport/fabric.h"
#include "transport/socket.h"

namespace sealane {

// With one other rank: as many of either kind, in the same order at both ends. None: that rank is
// reached by other means.
struct TcpConnections {
  std::vector<Socket> pair;
  std::vector<Socket> broadcast;
};

class TcpFabric final : public Fabric {
 public:
  // Bytes a rank holds that has `streams` connections of either kind with all others.
  static size_t memory_bytes(const WireShape& shape, uint32_t streams);

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
  bool behind(uint32_t peer) const override;
  size_t memory_bytes() const override;

  // wait() also ends when this descriptor, an eventfd of the caller's, has been written to.
  void watch(int event_descriptor);

 private:
  struct Staging;  // the slots of one out wire
  struct Connection;
  struct Inlet {  // one in wire
    std::vector<std::unique_ptr<Connection>> streams;
    uint64_t received = 0;
  };

  void connect(uint32_t wire, std::vector<Socket> sockets, Staging& out);
  Connection& next_in(uint32_t wire) const;
  Staging& staging(uint32_t wire) { return *staging_[wire]; }
  void send_some(Connection& connection);
  void receive_some(Connection& connection);

  WireShape shape_;
  Socket epoll_;
  int watched_ = -1;
  std::vector<std::unique_ptr<Staging>> staging_;  // per out wire; none where nobody is connected
  std::vector<Inlet> inlets_;                      // per in wire
};

}  // namespace sealane
