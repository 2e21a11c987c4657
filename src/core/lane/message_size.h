// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How long the messages are that a driver cuts its copies into, learnt from those that come by. The
// first message of a copy tells: one that is not all of the copy is as long as messages are, if
// another of that length comes next; one that is all of it shows that they are at least as long.
//
// What is learnt may be wrong; whoever uses it compares each message with what it expects. Pure.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "base/bytes.h"

namespace sealane {

class MessageSize {
 public:
  // Outside of these a slot for each message is not worth having.
  static constexpr uint64_t kLeast = 16_KiB;
  static constexpr uint64_t kMost = 16_MiB;

  explicit MessageSize(uint64_t bytes) : bytes_(bytes) {}

  uint64_t bytes() const { return bytes_; }

  // The first message of a copy. True: bytes() is another one now.
  bool observe(uint64_t message_bytes, uint64_t copy_bytes) {
    if (message_bytes < kLeast || message_bytes > kMost) return false;
    if (message_bytes >= copy_bytes) {
      if (message_bytes <= bytes_) return false;
      bytes_ = std::min(std::bit_ceil(message_bytes), kMost);
      return true;
    }
    const bool again = std::exchange(last_, message_bytes) == message_bytes;
    if (message_bytes == bytes_ || !again) return false;
    bytes_ = message_bytes;
    return true;
  }

 private:
  uint64_t bytes_;
  uint64_t last_ = 0;  // of the last copy that had several
};

}  // namespace sealane
