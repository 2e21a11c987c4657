// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The untrusted way of one direction: a ring of message slots in shared memory, and whoever sits on
// it. The producer fills a slot and publishes it; the adversary may then do what it likes; the
// consumer takes messages in order. One transfer at a time, one producer and one consumer thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/wait_word.h"
#include "emu/channel/gcm.h"
#include "emu/config/config.h"

namespace sealane::emu {

struct BusMessage {
  uint8_t* data = nullptr;  // message_bytes_max of them
  uint64_t bytes = 0;
  GcmTag tag{};
  uint64_t published_at = 0;  // see Bus::publish
};

class Bus {
 public:
  Bus(Direction direction, const Config& config);
  ~Bus();
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;

  void begin(uint32_t message_count);  // a new transfer; both sides are idle

  BusMessage* produce(uint32_t index);  // waits for a free slot; nullptr: aborted
  // `at`: when it is published on the modelled machine's clock, for the link's pacing.
  void publish(uint32_t index, uint64_t at);
  BusMessage* consume(uint32_t index);  // waits for the message; nullptr: aborted
  void release(uint32_t index);

  void abort();  // wakes both sides
  bool aborted() const { return aborted_.load(); }

 private:
  friend class Attacker;
  BusMessage& slot(uint32_t index) { return slots_[index % slots_.size()]; }
  void advance(WaitWord<uint32_t>& counter, uint32_t value);
  bool await(const WaitWord<uint32_t>& counter, uint32_t least);

  const Direction direction_;
  std::vector<BusMessage> slots_;
  uint8_t* memory_;
  uint64_t memory_bytes_;
  uint32_t count_ = 0;
  WaitWord<uint32_t> published_{0};
  WaitWord<uint32_t> consumed_{0};
  std::atomic<bool> aborted_{false};
};

}  // namespace sealane::emu
