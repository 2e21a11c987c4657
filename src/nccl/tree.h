// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// All-reduces over a tree of ranks, as NCCL's proxy moves them: every slice goes up as soon as all
// children's have come, each rank adding its own, and down again from the root.
//
// Concurrency: one thread, as Player.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/result.h"
#include "nccl/player.h"

namespace sealane::nccl {

class Tree {
 public:
  static constexpr size_t kSlicesMax = 4;  // under way on each connection, each way

  // Connects to the parent, (rank - 1) / 2, and to the children, both ways; all ranks call it.
  static Result<Tree> connect(Player& player, size_t slice_bytes);
  void close();

  // Sum of float32 over all ranks, in place.
  Status all_reduce(std::vector<float>& values);

 private:
  // To one neighbour. Slices are counted.
  struct Edge {
    Player::Pair connections;
    std::vector<std::vector<float>> staging;
    std::deque<void*> sending;
    std::deque<void*> receiving;
    uint64_t sent = 0;
    uint64_t posted = 0;
    uint64_t received = 0;
  };

  Tree(Player& player, size_t slice_bytes);
  Status add_edge(int neighbour);
  Edge* parent() { return root_ ? nullptr : &edges_.front(); }
  std::vector<Edge*> children();
  size_t count_of(uint64_t slice) const;  // values of it

  Result<bool> step();  // true: something moved
  Result<bool> post_receives(Edge& edge);
  Result<bool> take(Edge& edge, bool adds);
  Result<bool> send_up_to(Edge& edge, uint64_t slices);
  Result<bool> look_at_sends(Edge& edge);

  Player* player_;
  bool root_;
  size_t slice_;             // values of one
  std::vector<Edge> edges_;  // the parent's first, if there is one
  std::vector<float>* values_ = nullptr;
  uint64_t slices_ = 0;
};

}  // namespace sealane::nccl
