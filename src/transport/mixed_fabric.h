// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Wires of a group that spans hosts: shared memory to the ranks of this host, TCP to the others.
// Broadcast records are staged for TCP and copied to shared memory, so they are sealed once. Waits
// for sockets and for an eventfd that the ranks of this host ring. One thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "transport/shm_fabric.h"
#include "transport/tcp_fabric.h"

namespace sealane {

class MixedFabric final : public Fabric {
 public:
  // `local_ranks` are the ranks of this host in ascending order, the own among them; `shm` numbers
  // them from 0. `own_bell` is the eventfd the others of this host wake this rank by.
  MixedFabric(const WireShape& shape, std::vector<uint32_t> local_ranks,
              std::unique_ptr<ShmFabric> shm, std::unique_ptr<TcpFabric> tcp, Socket own_bell);

  bool writable(uint32_t wire) override;
  MutableBytes slot(uint32_t wire) override;
  void commit(uint32_t wire, size_t bytes) override;
  bool streams(uint32_t wire, size_t bytes) override;
  bool readable(uint32_t wire) override;
  Bytes front(uint32_t wire) override;
  void pop(uint32_t wire) override;
  Duration patience() override { return Duration(0); }
  void prepare_wait() override { shm_->prepare_wait(); }
  void wait(Duration at_most) override;
  bool flush() override;
  bool lost(uint32_t peer) const override;
  bool behind(uint32_t peer) const override;
  size_t memory_bytes() const override { return shm_->memory_bytes() + tcp_->memory_bytes(); }

 private:
  static constexpr uint32_t kElsewhere = ~uint32_t{0};

  bool is_everyone(uint32_t out_wire) const { return out_wire == shape_.size; }
  bool is_local(uint32_t wire) const { return local_index_[wire % shape_.size] != kElsewhere; }
  uint32_t shm_out(uint32_t wire) const { return local_index_[wire]; }
  uint32_t shm_in(uint32_t wire) const;

  WireShape shape_;
  uint32_t local_size_;
  std::vector<uint32_t> local_index_;  // per rank: its number in shared memory
  std::unique_ptr<ShmFabric> shm_;
  std::unique_ptr<TcpFabric> tcp_;
  Socket own_bell_;
};

}  // namespace sealane
