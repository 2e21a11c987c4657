// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Requests as they arrive: Poisson in time, with the lengths of two datasets people serve. The
// means are those of the vLLM paper (SOSP'23, figure 11: Alpaca 19 in and 58 out, ShareGPT 161 and
// 338); their spread is not published as a number and is assumed to be log-normal.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "base/random.h"
#include "base/time.h"
#include "workload/serving/serving.h"

namespace sealane::workload {

struct Request {
  Instant arrived{};
  uint64_t prompt = 0;
  uint64_t answer = 0;
  uint64_t generated = 0;
  uint64_t blocks = 0;      // of KV that it holds
  uint64_t swapped_to = 0;  // where they lie on the host, counted in blocks
};

class Requests {
 public:
  static constexpr uint64_t kTokensMax = 1'024;  // of a prompt, and of an answer

  // A rate of 0: the next one is there as soon as somebody asks for it.
  Requests(Lengths lengths, double per_second, uint64_t seed)
      : lengths_(lengths), per_second_(per_second), random_(seed) {
    draw(Instant{});
  }

  // The one that arrives next, which may be in the future.
  Request& peek(Instant now) {
    if (per_second_ == 0) next_.arrived = now;
    return next_;
  }
  Request take(Instant now) {
    const Request taken = peek(now);
    draw(taken.arrived);
    return taken;
  }

 private:
  void draw(Instant after) {
    next_ = {};
    if (lengths_ == Lengths::alpaca) {
      next_.prompt = length(19.3, 0.5);
      next_.answer = length(58.5, 0.8);
    } else {
      next_.prompt = length(161.3, 1.0);
      next_.answer = length(338.0, 0.8);
    }
    next_.arrived = after;
    if (per_second_ > 0) {
      next_.arrived += Duration(std::llround(-std::log(1 - random_.real()) / per_second_ * 1e9));
    }
  }

  uint64_t length(double mean, double spread) {
    const double radius = std::sqrt(-2 * std::log(1 - random_.real()));
    const double normal = radius * std::cos(2 * std::numbers::pi * random_.real());
    const double tokens = mean * std::exp(spread * normal - spread * spread / 2);
    return std::clamp<uint64_t>(static_cast<uint64_t>(std::llround(tokens)), 4, kTokensMax);
  }

  Lengths lengths_;
  double per_second_;
  SeededRandom random_;
  Request next_;
};

}  // namespace sealane::workload
