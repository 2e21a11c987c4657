// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "transport/mixed_fabric.h"

#include <cstring>
#include <utility>

namespace sealane {

MixedFabric::MixedFabric(const WireShape& shape, std::vector<uint32_t> local_ranks,
                         std::unique_ptr<ShmFabric> shm, std::unique_ptr<TcpFabric> tcp,
                         Socket own_bell)
    : shape_(shape),
      local_size_(static_cast<uint32_t>(local_ranks.size())),
      local_index_(shape.size, kElsewhere),
      shm_(std::move(shm)),
      tcp_(std::move(tcp)),
      own_bell_(std::move(own_bell)) {
  for (uint32_t index = 0; index < local_size_; ++index) local_index_[local_ranks[index]] = index;
  tcp_->watch(own_bell_.descriptor());
}

uint32_t MixedFabric::shm_in(uint32_t wire) const {
  const uint32_t peer = local_index_[wire % shape_.size];
  return wire < shape_.size ? peer : local_size_ + peer;
}

// ---- Sending ----

bool MixedFabric::writable(uint32_t wire) {
  if (is_everyone(wire)) return tcp_->writable(wire) && shm_->writable(local_size_);
  return is_local(wire) ? shm_->writable(shm_out(wire)) : tcp_->writable(wire);
}

MutableBytes MixedFabric::slot(uint32_t wire) {
  if (is_everyone(wire) || !is_local(wire)) return tcp_->slot(wire);
  return shm_->slot(shm_out(wire));
}

void MixedFabric::commit(uint32_t wire, size_t bytes) {
  if (is_everyone(wire)) {
    std::memcpy(shm_->slot(local_size_).data(), tcp_->slot(wire).data(), bytes);
    shm_->commit(local_size_, bytes);
    tcp_->commit(wire, bytes);
  } else if (is_local(wire)) {
    shm_->commit(shm_out(wire), bytes);
  } else {
    tcp_->commit(wire, bytes);
  }
}

bool MixedFabric::streams(uint32_t wire, size_t bytes) {
  return !is_everyone(wire) && is_local(wire) && shm_->streams(shm_out(wire), bytes);
}

bool MixedFabric::flush() {
  const bool shm_done = shm_->flush();
  return tcp_->flush() && shm_done;
}

// ---- Receiving ----

bool MixedFabric::readable(uint32_t wire) {
  return is_local(wire) ? shm_->readable(shm_in(wire)) : tcp_->readable(wire);
}

Bytes MixedFabric::front(uint32_t wire) {
  return is_local(wire) ? shm_->front(shm_in(wire)) : tcp_->front(wire);
}

void MixedFabric::pop(uint32_t wire) {
  if (is_local(wire)) {
    shm_->pop(shm_in(wire));
  } else {
    tcp_->pop(wire);
  }
}

bool MixedFabric::lost(uint32_t peer) const { return !is_local(peer) && tcp_->lost(peer); }

bool MixedFabric::behind(uint32_t peer) const {
  return is_local(peer) ? shm_->behind(local_index_[peer]) : tcp_->behind(peer);
}

// ---- Waiting ----

void MixedFabric::wait(Duration at_most) {
  tcp_->wait(at_most);
  shm_->end_wait();
}

}  // namespace sealane
