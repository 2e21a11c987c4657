// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Speculation must never cost a program more than it brings. This account is the proof: guessing
// may spend what it has earned, plus a small share of the time that has passed; when that is gone
// it stops, and only passing time opens it again. Pure.
#pragma once

#include "base/time.h"

namespace sealane {

class Account {
 public:
  // 1/256 of the elapsed time may be lost to guesses that never pay.
  static constexpr int64_t kAllowanceShare = 256;

  void earn(Duration saved) { balance_ += saved; }
  void spend(Duration lost) { balance_ -= lost; }

  bool open(Instant now) {
    if (start_ == Instant{}) start_ = now;
    // Old earnings do not license a long loss later.
    const Duration cap = (now - start_) / 8 + Duration(1'000'000);
    if (balance_ > cap) balance_ = cap;
    return balance_ + (now - start_) / kAllowanceShare >= Duration{0};
  }

 private:
  Instant start_{};
  Duration balance_{0};
};

}  // namespace sealane
