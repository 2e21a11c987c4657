// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Swapping layer by layer: the first block out is the first back in.
#pragma once

#include "kv_swap/blocks.h"

namespace examples {

// Two device buffers, each for one layer's blocks of all requests.
class LayerWise {
 public:
  LayerWise(const Settings& settings, Blocks& blocks)
      : settings_(settings),
        blocks_(blocks),
        store_(settings.layers * request_blocks() * settings.block_words()),
        table_(request_blocks()) {
    for (Slot& slot : slots_) {
      slot.pool = gpu::DeviceBuffer<uint32_t>(request_blocks() * settings.block_words());
      slot.loaded = gpu::make_event();
      slot.stored = gpu::make_event();
    }
    fill_store();
    std::vector<int32_t> identity(table_.size());
    for (size_t i = 0; i < identity.size(); ++i) identity[i] = static_cast<int32_t>(i);
    gpu::copy_in(table_.data(), identity.data(), table_.bytes(), blocks.compute());
    gpu::synchronize(blocks.compute());
  }

  ~LayerWise() {
    for (Slot& slot : slots_) {
      gpu::destroy(slot.loaded);
      gpu::destroy(slot.stored);
    }
    gpu::destroy(in_);
    gpu::destroy(out_);
  }
  LayerWise(const LayerWise&) = delete;
  LayerWise& operator=(const LayerWise&) = delete;

  void run() {
    run_steps(0, settings_.warmup);
    gpu::synchronize(blocks_.compute());
    blocks_.figures() = {};
    gpu::Stopwatch watch(blocks_.compute());
    run_steps(settings_.warmup, settings_.warmup + settings_.steps);
    blocks_.figures().seconds = watch.stop(blocks_.compute());
  }

 private:
  struct Slot {
    gpu::DeviceBuffer<uint32_t> pool;
    gpu::Event loaded;
    gpu::Event stored;
  };

  // Steps [first, end); what follows on the compute stream is behind everything.
  void run_steps(size_t first, size_t end) {
    const size_t turns = end * settings_.layers;
    if (first < end) load(first * settings_.layers);
    for (size_t turn = first * settings_.layers; turn < turns; ++turn) {
      if (turn + 1 < turns) load(turn + 1);
      compute(turn);
      store(turn);
      if ((turn + 1) % settings_.layers == 0) gpu::synchronize(blocks_.compute());
    }
    blocks_.order(out_, blocks_.compute());
  }

  size_t request_blocks() const { return settings_.requests * settings_.blocks_max(); }
  size_t tokens_at(size_t turn) const { return settings_.prompt + turn / settings_.layers; }
  size_t layer_at(size_t turn) const { return turn % settings_.layers; }
  size_t block_offset(size_t request, size_t block) const {
    return (request * settings_.blocks_max() + block) * settings_.block_words();
  }
  uint32_t owner(size_t layer, size_t request) const {
    return settings_.owner(layer * settings_.requests + request);
  }
  uint32_t* stored(size_t layer, size_t request, size_t block) const {
    return store_.data() + layer * request_blocks() * settings_.block_words() +
           block_offset(request, block);
  }

  void fill_store() {
    const auto words = static_cast<uint32_t>(settings_.token_words);
    for (size_t layer = 0; layer < settings_.layers; ++layer) {
      for (size_t request = 0; request < settings_.requests; ++request) {
        uint32_t* const first = stored(layer, request, 0);
        for (uint32_t token = 0; token < settings_.prompt; ++token) {
          for (uint32_t word = 0; word < words; ++word) {
            first[size_t{token} * words + word] = kv_word(owner(layer, request), token, word);
          }
        }
      }
    }
  }

  // A block is read from host memory only after it was written there: stores are in order, and
  // this waits for the one two turns ago.
  void load(size_t turn) {
    Slot& slot = slots_[turn % 2];
    if (turn >= 2) gpu::wait(in_, slot.stored);
    for (size_t request = 0; request < settings_.requests; ++request) {
      for (size_t block = 0; block < settings_.blocks_of(tokens_at(turn)); ++block) {
        blocks_.swap_in(slot.pool.data() + block_offset(request, block),
                        stored(layer_at(turn), request, block), in_);
      }
    }
    gpu::record(slot.loaded, in_);
  }

  void compute(size_t turn) {
    Slot& slot = slots_[turn % 2];
    gpu::wait(blocks_.compute(), slot.loaded);
    const size_t token = tokens_at(turn);
    for (size_t request = 0; request < settings_.requests; ++request) {
      const size_t offset = block_offset(request, token / settings_.block_tokens);
      const uint32_t who = owner(layer_at(turn), request);
      blocks_.append(slot.pool.data() + offset, who, token, token + 1);
      blocks_.read(slot.pool, table_.data() + request * settings_.blocks_max(),
                   {who, static_cast<uint32_t>(token + 1)});
    }
  }

  void store(size_t turn) {
    Slot& slot = slots_[turn % 2];
    blocks_.order(blocks_.compute(), out_);
    const size_t block = tokens_at(turn) / settings_.block_tokens;
    for (size_t request = 0; request < settings_.requests; ++request) {
      blocks_.swap_out(stored(layer_at(turn), request, block),
                       slot.pool.data() + block_offset(request, block), out_);
    }
    gpu::record(slot.stored, out_);
  }

  const Settings& settings_;
  Blocks& blocks_;
  gpu::Stream in_ = gpu::make_stream();
  gpu::Stream out_ = gpu::make_stream();
  gpu::PinnedBuffer<uint32_t> store_;
  gpu::DeviceBuffer<int32_t> table_;
  Slot slots_[2];
};

}  // namespace examples
