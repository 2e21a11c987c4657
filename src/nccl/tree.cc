// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "nccl/tree.h"

#include <sched.h>

#include <algorithm>

#include "base/try.h"

namespace sealane::nccl {

Tree::Tree(Player& player, size_t slice_bytes)
    : player_(&player),
      root_(player.seat().rank() == 0),
      slice_(std::max<size_t>(slice_bytes / sizeof(float), 1)) {}

// The parent first: so nobody waits for one who waits for him.
Result<Tree> Tree::connect(Player& player, size_t slice_bytes) {
  Tree tree(player, slice_bytes);
  const int rank = player.seat().rank();
  if (rank != 0) {
    SEALANE_TRY(tree.add_edge((rank - 1) / 2));
  }
  for (const int child : {2 * rank + 1, 2 * rank + 2}) {
    if (child >= player.seat().ranks()) continue;
    SEALANE_TRY(tree.add_edge(child));
  }
  return tree;
}

Status Tree::add_edge(int neighbour) {
  SEALANE_LET(auto both, player_->connect_ring(neighbour, neighbour));
  Edge edge;
  edge.connections = both;
  edge.staging.assign(kSlicesMax, std::vector<float>(slice_));
  edges_.push_back(std::move(edge));
  return {};
}

void Tree::close() {
  for (const Edge& edge : edges_) {
    player_->close_send(edge.connections.send);
    player_->close_receive(edge.connections.receive);
  }
  edges_.clear();
}

std::vector<Tree::Edge*> Tree::children() {
  std::vector<Edge*> all;
  for (size_t i = root_ ? 0 : 1; i < edges_.size(); ++i) all.push_back(&edges_[i]);
  return all;
}

size_t Tree::count_of(uint64_t slice) const {
  return std::min(slice_, values_->size() - static_cast<size_t>(slice) * slice_);
}

Status Tree::all_reduce(std::vector<float>& values) {
  values_ = &values;
  slices_ = (values.size() + slice_ - 1) / slice_;
  for (Edge& edge : edges_) edge.sent = edge.posted = edge.received = 0;
  const auto done = [&](const Edge& edge) {
    return edge.sent == slices_ && edge.received == slices_ && edge.sending.empty();
  };
  while (!std::all_of(edges_.begin(), edges_.end(), done)) {
    SEALANE_LET(auto moved, step());
    if (!moved) sched_yield();
  }
  return {};
}

Result<bool> Tree::step() {
  bool moved = false;
  for (Edge& edge : edges_) {
    const bool adds = root_ || &edge != &edges_.front();
    for (const auto& part : {post_receives(edge), take(edge, adds), look_at_sends(edge)}) {
      if (!part) return part.error();
      moved = moved || *part;
    }
  }
  uint64_t summed = slices_;
  for (const Edge* child : children()) summed = std::min(summed, child->received);
  if (Edge* const up = parent(); up != nullptr) {
    SEALANE_LET(auto part, send_up_to(*up, summed));
    moved = moved || part;
    summed = up->received;  // over all ranks
  }
  for (Edge* child : children()) {
    SEALANE_LET(auto part, send_up_to(*child, summed));
    moved = moved || part;
  }
  return moved;
}

Result<bool> Tree::post_receives(Edge& edge) {
  bool moved = false;
  for (; edge.posted < slices_ && edge.posted - edge.received < kSlicesMax; ++edge.posted) {
    SEALANE_LET(auto request, player_->receive(edge.connections.receive,
                                               edge.staging[edge.posted % kSlicesMax].data(),
                                               slice_ * sizeof(float)));
    edge.receiving.push_back(request);
    moved = true;
  }
  return moved;
}

// What a child sends is added, what the parent sends is the sum.
Result<bool> Tree::take(Edge& edge, bool adds) {
  if (edge.receiving.empty()) return false;
  SEALANE_LET(auto size, player_->poll(edge.receiving.front()));
  if (size < 0) return false;
  const size_t count = count_of(edge.received);
  if (static_cast<size_t>(size) != count * sizeof(float)) {
    return crypto_error("a slice of another size than the tree has");
  }
  const float* const from = edge.staging[edge.received % kSlicesMax].data();
  float* const to = values_->data() + edge.received * slice_;
  for (size_t i = 0; i < count; ++i) to[i] = adds ? to[i] + from[i] : from[i];
  edge.receiving.pop_front();
  ++edge.received;
  return true;
}

Result<bool> Tree::send_up_to(Edge& edge, uint64_t slices) {
  bool moved = false;
  for (; edge.sent < slices && edge.sending.size() < kSlicesMax; ++edge.sent) {
    SEALANE_LET(auto request,
                player_->send(edge.connections.send, values_->data() + edge.sent * slice_,
                              count_of(edge.sent) * sizeof(float)));
    edge.sending.push_back(request);
    moved = true;
  }
  return moved;
}

Result<bool> Tree::look_at_sends(Edge& edge) {
  bool moved = false;
  while (!edge.sending.empty()) {
    SEALANE_LET(auto size, player_->poll(edge.sending.front()));
    if (size < 0) break;
    edge.sending.pop_front();
    moved = true;
  }
  return moved;
}

}  // namespace sealane::nccl
