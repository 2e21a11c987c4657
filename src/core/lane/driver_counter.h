// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a channel of the driver's is, in positions of a ledger of ours, as far as its messages have
// shown it: each names a key and an IV (iv_follower.h). After a new key, or an IV the law does not
// explain, it is lost until restart(): the ledger begins anew where the channel is then. Pure.
#pragma once

#include <cstdint>

#include "core/lane/iv_follower.h"

namespace sealane {

class DriverCounter {
 public:
  // The channel's next message. The first one ever is taken to be at this position.
  void observe(uint64_t key, const Iv& iv, uint64_t position) {
    const bool known = follower_.started();
    const auto steps = follower_.observe(iv);
    if (known && (!steps || key != key_)) lost_ = true;
    if (steps) last_ += *steps;
    if (!known) last_ = position;
    key_ = key;
  }
  void restart(uint64_t next) {
    last_ = next - 1;
    lost_ = false;
  }

  bool started() const { return follower_.started(); }
  bool lost() const { return lost_; }
  uint64_t key() const { return key_; }
  uint64_t next() const { return last_ + 1; }
  Iv iv_of(uint64_t position) const { return follower_.predict(position - last_); }
  bool expects(uint64_t key, const Iv& iv) const {
    return started() && key == key_ && follower_.predict(1) == iv;
  }

 private:
  IvFollower follower_;
  uint64_t key_ = 0;
  uint64_t last_ = 0;  // the position of the IV seen last; wraps to one before 0
  bool lost_ = false;
};

}  // namespace sealane
