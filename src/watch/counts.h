// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Everything that is counted, as plain numbers: words and nothing else, so that two moments can be
// subtracted and the ranges between moments added up. Not synchronised; see Stats for who counts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/pipeline/pipeline.h"
#include "serve/events.h"

namespace sealane::serve {

constexpr size_t kRoutes = static_cast<size_t>(Route::passed_aside) + 1;
constexpr size_t kAnswers = static_cast<size_t>(Answer::slot) + 1;
constexpr Direction kDirections[] = {Direction::to_device, Direction::to_host};
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

// Of a lane that seals ahead.
struct LaneCounts {
  Pipeline::Stats pipeline;
  uint64_t messages_ahead;  // that the driver took from slots nobody had asked for yet

  uint64_t misses() const { return pipeline.requests - pipeline.hits; }
  double foreseen_rate() const;  // of the bulk copies
  double hit_rate() const;       // of their messages, those sealed ahead
};

struct Counts {
  static constexpr size_t kNamesMax = 64;
  static constexpr size_t kLanesMax = 16;

  Tally copies[2][2][2][kRoutes];  // by direction, asynchronous, pinned, route
  Tally messages[2][kAnswers];     // by direction
  Tally parts;
  Tally sealed[2];  // by workers, before their turn: asked for, nobody had asked
  Tally carried[2];
  uint64_t coalesced[2];        // copies that shared a crossing with others
  uint64_t crossings_saved[2];  // thereby
  Tally waits;
  uint64_t stock_ns[2];  // estimated, see StockCosts
  uint64_t keys;
  uint64_t calls[kNamesMax];    // by the place of their name in Stats
  uint64_t cpu_ns;              // of our own threads
  uint64_t elapsed_ns;          // of the ranges that were added up
  LaneCounts lanes[kLanesMax];  // in the order of LiveSpeculators::stats()

  Tally copies_of(Direction direction) const;
  Tally copies_by(Direction direction, Route route) const;
  double hit_rate() const;  // of the bytes sealed for the device, those that were sealed ahead
  LaneCounts lane_sum() const;

  Counts& operator+=(const Counts& other);
  Counts operator-(const Counts& earlier) const;
};

}  // namespace sealane::serve
