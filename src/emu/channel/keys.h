// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Keys and counters of one end of one channel. Both ends start from the same seed and never talk
// again: each derives its keys, counts its messages and rotates by its own count of bytes. If they
// ever disagree, the next message fails, which is what the emulated GPU is for.
//
// IV = counter XOR mask: dword 0 of the counter is the message counter, dwords 1-2 the channel's,
// little-endian. The first message of a key has counter 1. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "emu/channel/gcm.h"

namespace sealane::emu {

struct ChannelSeed {
  GcmKey secret{};
  uint64_t channel = 0;
};

class KeySchedule {
 public:
  explicit KeySchedule(const ChannelSeed& seed, uint64_t rotation_bytes);

  // Before each message: true if a new key is due, or wanted now; key() and iv() then speak of it.
  bool advance(uint64_t bytes, bool wanted = false);

  const GcmKey& key() const { return key_; }
  GcmIv iv() const;  // of the current message
  uint32_t counter() const { return counter_; }

 private:
  void derive();

  const ChannelSeed seed_;
  const uint64_t rotation_bytes_;
  uint64_t epoch_ = 0;
  uint64_t bytes_ = 0;
  uint32_t counter_ = 0;
  GcmKey key_{};
  GcmIv mask_{};
};

// The 16 bytes of additional data, where messages have them: the message counter and the
// length of the message.
std::array<uint8_t, 16> additional_data(uint32_t counter, uint64_t bytes);

}  // namespace sealane::emu
