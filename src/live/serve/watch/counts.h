// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Everything that is counted, as plain numbers: words and nothing else, so that two moments can be
// subtracted and the ranges between moments added up. Not synchronised; see Stats for who counts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "live/serve/events.h"

namespace sealane::serve {

constexpr size_t kRoutes = static_cast<size_t>(Route::passed_aside) + 1;
constexpr size_t kAnswers = static_cast<size_t>(Answer::slot) + 1;
std::string_view to_string(Route route);
std::string_view to_string(Answer answer);
std::string_view to_string(Direction direction);

// Everything that can be said of a group of copies, messages, waits.
struct Tally {
  uint64_t count;
  uint64_t bytes;
  uint64_t ns;
  uint64_t failed;

  Tally& operator+=(const Tally& other);
};

struct Counts {
  static constexpr size_t kNamesMax = 64;

  Tally copies[2][2][2][kRoutes];  // by direction, asynchronous, pinned, route
  Tally messages[2][kAnswers];     // by direction
  Tally parts;
  Tally carried[2];
  Tally waits;
  uint64_t stock_ns[2];  // estimated, see StockCosts
  uint64_t keys;
  uint64_t calls[kNamesMax];  // by the place of their name in Stats
  uint64_t cpu_ns;            // of our own threads
  uint64_t elapsed_ns;        // of the ranges that were added up

  Tally copies_of(Direction direction) const;
  Tally carried_of(Direction direction) const;
  double hit_rate() const;  // of the bytes sealed for the device, those that were sealed ahead

  Counts& operator+=(const Counts& other);
  Counts operator-(const Counts& earlier) const;
};

}  // namespace sealane::serve
