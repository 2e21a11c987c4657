// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What both ways of swapping do to blocks of a KV cache, and the log of what the device read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/gpu.h"

namespace examples {

struct Settings {
  std::string mode = "fifo";
  // 0: the mode's own number, see use_defaults().
  uint64_t requests = 0;
  uint64_t layers = 8;
  uint64_t block_tokens = 32;
  uint64_t token_words = 0;
  uint64_t prompt = 64;
  uint64_t steps = 0;
  uint64_t warmup = 0;  // steps before the clock starts
  uint64_t pool_blocks = 16;
  uint64_t seed = 1;
  std::string json;

  // Layer-wise swapping moves everything in every step; request-wise only what does not fit, so it
  // takes more and longer requests of larger blocks to see it.
  void use_defaults() {
    const bool fifo = mode == "fifo";
    if (requests == 0) requests = fifo ? 6 : 12;
    if (token_words == 0) token_words = fifo ? 2048 : 8192;
    if (steps == 0) steps = fifo ? 12 : 64;
  }

  // Layer-wise, the warm-up adds tokens to requests; request-wise it is the first of their steps.
  uint64_t tokens_added() const { return mode == "fifo" ? warmup + steps : steps; }
  size_t block_words() const { return block_tokens * token_words; }
  size_t block_bytes() const { return block_words() * sizeof(uint32_t); }
  size_t blocks_of(size_t tokens) const { return (tokens + block_tokens - 1) / block_tokens; }
  size_t blocks_max() const { return blocks_of(prompt + tokens_added()); }
  // What a block holds is a function of its owner: a request, or a request's part of a layer.
  uint32_t owner(size_t number) const { return static_cast<uint32_t>(seed * 0x10001 + number); }
};

// A digest that was fetched: the first `tokens` tokens of `owner` as the device read them.
struct Reading {
  uint32_t owner;
  uint32_t tokens;
};

// Of what is measured.
struct Figures {
  double seconds = 0;
  uint64_t readings = 0;
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
};

// What both modes do to blocks, and the log of what was read.
class Blocks {
 public:
  Blocks(const Settings& settings, size_t readings_max)
      : settings_(settings),
        digest_(settings.token_words),
        digests_(readings_max * settings.token_words) {}
  ~Blocks() {
    gpu::destroy(event_);
    gpu::destroy(compute_);
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  gpu::Stream compute() const { return compute_; }

  // What follows on `to` waits for what is on `from` now.
  void order(gpu::Stream from, gpu::Stream to) {
    gpu::record(event_, from);
    gpu::wait(to, event_);
  }

  void swap_in(uint32_t* device, const uint32_t* host, gpu::Stream stream) {
    gpu::copy_in(device, host, settings_.block_bytes(), stream);
    figures_.bytes_in += settings_.block_bytes();
  }
  void swap_out(uint32_t* host, const uint32_t* device, gpu::Stream stream) {
    gpu::copy_out(host, device, settings_.block_bytes(), stream);
    figures_.bytes_out += settings_.block_bytes();
  }

  // Writes tokens [first, last) of an owner; they lie in one block.
  void append(uint32_t* block, uint32_t owner, size_t first, size_t last) {
    uint32_t* const slots = block + first % settings_.block_tokens * settings_.token_words;
    gpu::launch(KvAppend{slots, token_words(), static_cast<uint32_t>(last - first), owner,
                         static_cast<uint32_t>(first)},
                compute_);
  }

  void read(const gpu::DeviceBuffer<uint32_t>& pool, const int32_t* table, Reading reading) {
    gpu::launch(KvDigest{pool.data(), table, digest_.data(), pool.size(), token_words(),
                         static_cast<uint32_t>(settings_.block_tokens), reading.tokens},
                compute_);
    gpu::copy_out(digests_.data() + readings_.size() * settings_.token_words, digest_.data(),
                  digest_.bytes(), compute_);
    readings_.push_back(reading);
    ++figures_.readings;
  }

  Figures& figures() { return figures_; }

  // Compares every digest with what must have been read; returns a hash of all, or ends the
  // program. An owner's readings are of ever more tokens.
  std::string check() const;

 private:
  uint32_t token_words() const { return static_cast<uint32_t>(settings_.token_words); }

  const Settings& settings_;
  gpu::Stream compute_ = gpu::make_stream();
  gpu::Event event_ = gpu::make_event();
  gpu::DeviceBuffer<uint32_t> digest_;
  gpu::PinnedBuffer<uint32_t> digests_;
  std::vector<Reading> readings_;
  Figures figures_;
};

}  // namespace examples
