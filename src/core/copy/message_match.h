// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Whose message is this? A driver seals (or opens) the messages of a copy one after the other, and
// messages of its own in between, of any length. Only in place of the copy's next message may
// anything but the bytes the driver points at be sealed. It is known
//   by its place  if the driver names where that message begins in the memory it was handed,
//   by its bytes  if the driver names memory nobody knows, because it seals from a buffer of its
//                 own. Then the message has to come in one piece, as long as was expected, behind
//                 others that were, and to hold the very bytes that were sealed: whoever asks
//                 compares them.
// Any other message is sealed as it is, whatever its length.
//
// One for each copy thread whose messages somebody answers. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/copy.h"
#include "core/rules.h"

namespace sealane {

enum class MessageOwner : uint8_t { driver, copy, copy_if_same_bytes };

class MessageMatch {
 public:
  // What the driver was handed, and how long its messages are, as far as anybody knows.
  void begin(const Range& handed, uint64_t message_bytes) {
    handed_ = handed;
    message_bytes_ = message_bytes;
    done_ = 0;
    strayed_ = false;
  }
  void end() { handed_ = {}; }

  // `piece`: the first piece of the message.
  MessageOwner owner_of(const Range& piece, const SafetyRules& rules = {}) const {
    if (over()) return MessageOwner::driver;
    if (piece.address >= handed_.address && piece.address < handed_.end()) {
      const bool next = piece.address == handed_.address + start() && piece.end() <= handed_.end();
      return next ? MessageOwner::copy : MessageOwner::driver;
    }
    if (strayed_ || piece.bytes != length()) return MessageOwner::driver;
    return rules.message_match ? MessageOwner::copy_if_same_bytes : MessageOwner::copy;
  }
  // The copy's next message is over, and was so long.
  void advance(uint64_t bytes) {
    strayed_ = strayed_ || bytes != length();
    ++done_;
  }

  uint64_t done() const { return done_; }  // messages
  bool over() const { return start() >= handed_.bytes; }
  // Of the next one, within what was handed over.
  uint64_t start() const { return done_ * message_bytes_; }
  uint64_t length() const { return std::min(message_bytes_, handed_.bytes - start()); }

 private:
  Range handed_;
  uint64_t message_bytes_ = 0;
  uint64_t done_ = 0;
  bool strayed_ = false;  // a message was not as long as expected
};

}  // namespace sealane
