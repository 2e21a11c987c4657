// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// All that seal ahead in this process: whose message is this, and what have they done so far, those
// that have stopped included? Thread-safe; find() takes each one's lock in turn. Fails by add():
// there is no place for another.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/pipeline/pipeline.h"
#include "seal/aead.h"

namespace sealane::serve {

class LiveSpeculator;

// For those who watch.
struct SpeculationStats {
  uint64_t number = 0;  // in the order they were made
  int device = 0;
  int lane = 0;
  Pipeline::Stats pipeline{};
  uint64_t answered = 0;        // messages answered from slots,
  uint64_t answered_ahead = 0;  // of those, sealed before they were asked for
  uint64_t slot_bytes = 0;
  uint64_t slot_bytes_peak = 0;
  std::string_view leader{};
  std::vector<PredictorScore> predictors{};  // those it was chosen from
};

class LiveSpeculators {
 public:
  uint64_t take_number() { return made_.fetch_add(1); }
  bool add(LiveSpeculator& one);
  void remove(LiveSpeculator& one, SpeculationStats last);  // its place is for another

  // Whose message is this? By the thread's copy in flight, else by key and IV, else by its source.
  LiveSpeculator* find(uint64_t key, const Iv& iv, const uint8_t* in);
  std::vector<SpeculationStats> stats();  // in the order they were made

 private:
  static constexpr size_t kMax = 64;

  std::atomic<uint64_t> made_{0};
  std::atomic<LiveSpeculator*> all_[kMax] = {};
  std::mutex mutex_;
  std::vector<SpeculationStats> past_;
};

}  // namespace sealane::serve
