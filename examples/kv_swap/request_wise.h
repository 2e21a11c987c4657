// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Swapping request by request: the last one out is the first back in.
#pragma once

#include <algorithm>
#include <vector>

#include "kv_swap/blocks.h"
#include "support/fail.h"

namespace examples {

// A pool of blocks, requests that grow, and a stack of preempted ones.
class RequestWise {
 public:
  RequestWise(const Settings& settings, Blocks& blocks)
      : settings_(settings),
        blocks_(blocks),
        pool_(settings.pool_blocks * settings.block_words()),
        saved_(settings.requests * settings.blocks_max() * settings.block_words()),
        tables_(settings.requests * settings.blocks_max()),
        device_tables_(tables_.size()),
        requests_(settings.requests) {
    for (size_t i = 0; i < settings.pool_blocks; ++i) free_.push_back(static_cast<int32_t>(i));
    for (size_t i = settings.requests; i > 0; --i) waiting_.push_back(i - 1);
    for (size_t i = 0; i < settings.requests; ++i) {
      // Requests end at different times.
      requests_[i].tokens_end = settings.prompt + settings.steps - i * 5 % (settings.steps / 2 + 1);
    }
  }

  ~RequestWise() { gpu::destroy(swap_); }
  RequestWise(const RequestWise&) = delete;
  RequestWise& operator=(const RequestWise&) = delete;

  void run() {
    uint64_t steps = 0;
    for (; steps < settings_.warmup && !finished(); ++steps) serve_step();
    if (finished()) {
      fail_usage("--warmup: there are %llu steps in all", static_cast<unsigned long long>(steps));
    }
    blocks_.figures() = {};
    gpu::Stopwatch watch(blocks_.compute());
    while (!finished()) serve_step();
    blocks_.figures().seconds = watch.stop(blocks_.compute());
  }

 private:
  bool finished() const { return waiting_.empty() && running_.empty() && preempted_.empty(); }

  void serve_step() {
    resume();
    admit();
    make_room();
    step();
    retire();
  }

  struct Request {
    size_t tokens = 0;
    size_t tokens_end = 0;
    std::vector<int32_t> blocks;
  };

  uint32_t* block_data(int32_t block) const {
    return pool_.data() + static_cast<size_t>(block) * settings_.block_words();
  }
  uint32_t* saved(size_t id, size_t index) const {
    return saved_.data() + (id * settings_.blocks_max() + index) * settings_.block_words();
  }
  void take_blocks(Request& request, size_t count) {
    for (; count > 0; --count) {
      request.blocks.push_back(free_.back());
      free_.pop_back();
    }
  }
  void give_blocks(Request& request) {
    free_.insert(free_.end(), request.blocks.begin(), request.blocks.end());
    request.blocks.clear();
  }

  // The last one preempted comes back first, as soon as it fits with one more token.
  void resume() {
    blocks_.order(blocks_.compute(), swap_);
    while (!preempted_.empty()) {
      const size_t id = preempted_.back();
      Request& request = requests_[id];
      if (free_.size() < settings_.blocks_of(request.tokens + 1)) break;
      preempted_.pop_back();
      take_blocks(request, settings_.blocks_of(request.tokens));
      for (size_t i = 0; i < request.blocks.size(); ++i) {
        blocks_.swap_in(block_data(request.blocks[i]), saved(id, i), swap_);
      }
      running_.push_back(id);
    }
    blocks_.order(swap_, blocks_.compute());
  }

  void admit() {
    while (preempted_.empty() && !waiting_.empty() &&
           free_.size() >= settings_.blocks_of(settings_.prompt + 1)) {
      const size_t id = waiting_.back();
      waiting_.pop_back();
      Request& request = requests_[id];
      take_blocks(request, settings_.blocks_of(settings_.prompt));
      for (size_t i = 0; i < request.blocks.size(); ++i) {
        const size_t first = i * settings_.block_tokens;
        const size_t last = std::min<size_t>(first + settings_.block_tokens, settings_.prompt);
        blocks_.append(block_data(request.blocks[i]), settings_.owner(id), first, last);
      }
      request.tokens = settings_.prompt;
      running_.push_back(id);
    }
  }

  // Gives every running request a slot for its next token, oldest first; the youngest make room.
  void make_room() {
    blocks_.order(blocks_.compute(), swap_);
    for (size_t i = 0; i < running_.size(); ++i) {
      Request& request = requests_[running_[i]];
      if (settings_.blocks_of(request.tokens + 1) == request.blocks.size()) continue;
      while (free_.empty() && i < running_.size()) preempt_youngest();
      if (i < running_.size()) take_blocks(request, 1);
    }
    blocks_.order(swap_, blocks_.compute());
  }

  void preempt_youngest() {
    const size_t id = running_.back();
    running_.pop_back();
    Request& request = requests_[id];
    // A block that was just given to it has nothing in it yet.
    for (size_t i = 0; i < settings_.blocks_of(request.tokens); ++i) {
      blocks_.swap_out(saved(id, i), block_data(request.blocks[i]), swap_);
    }
    give_blocks(request);
    preempted_.push_back(id);
  }

  void step() {
    for (const size_t id : running_) {
      std::copy(requests_[id].blocks.begin(), requests_[id].blocks.end(),
                tables_.data() + id * settings_.blocks_max());
    }
    gpu::copy_in(device_tables_.data(), tables_.data(), tables_.bytes(), blocks_.compute());
    for (const size_t id : running_) {
      Request& request = requests_[id];
      const uint32_t owner = settings_.owner(id);
      blocks_.append(block_data(request.blocks.back()), owner, request.tokens, request.tokens + 1);
      ++request.tokens;
      blocks_.read(pool_, device_tables_.data() + id * settings_.blocks_max(),
                   {owner, static_cast<uint32_t>(request.tokens)});
    }
    gpu::synchronize(blocks_.compute());
  }

  void retire() {
    std::erase_if(running_, [this](size_t id) {
      if (requests_[id].tokens < requests_[id].tokens_end) return false;
      give_blocks(requests_[id]);
      return true;
    });
  }

  const Settings& settings_;
  Blocks& blocks_;
  gpu::Stream swap_ = gpu::make_stream();
  gpu::DeviceBuffer<uint32_t> pool_;
  gpu::PinnedBuffer<uint32_t> saved_;
  gpu::PinnedBuffer<int32_t> tables_;
  gpu::DeviceBuffer<int32_t> device_tables_;
  std::vector<Request> requests_;
  std::vector<int32_t> free_;
  std::vector<size_t> waiting_;    // next one at the back
  std::vector<size_t> running_;    // oldest first
  std::vector<size_t> preempted_;  // a stack
};

}  // namespace examples
