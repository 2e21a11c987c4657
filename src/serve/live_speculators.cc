// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/live_speculators.h"

#include <algorithm>
#include <utility>

#include "serve/live_speculator.h"
#include "serve/process.h"

namespace sealane::serve {

bool LiveSpeculators::add(LiveSpeculator& one) {
  for (auto& entry : all_) {
    LiveSpeculator* none = nullptr;
    if (entry.compare_exchange_strong(none, &one)) return true;
  }
  return false;
}

void LiveSpeculators::remove(LiveSpeculator& one, SpeculationStats last) {
  {
    const std::lock_guard lock(mutex_);
    past_.push_back(std::move(last));
  }
  for (auto& entry : all_) {
    LiveSpeculator* self = &one;
    if (entry.compare_exchange_strong(self, nullptr)) return;
  }
}

// A new channel, or one with a new key, shows itself by the place its first message names. Several
// copies may be made from there at once: then nobody can tell whose message it is.
LiveSpeculator* LiveSpeculators::find(uint64_t key, const Iv& iv, const uint8_t* in) {
  if (LiveSpeculator* const mine = this_thread().carrying) return mine;
  LiveSpeculator* by_place = nullptr;
  bool ambiguous = false;
  for (auto& entry : all_) {
    LiveSpeculator* const one = entry.load(std::memory_order_acquire);
    if (one == nullptr) continue;
    const auto claim = one->claim(key, iv, in);
    if (claim == LiveSpeculator::Claim::by_iv) return one;
    if (claim == LiveSpeculator::Claim::none) continue;
    ambiguous = by_place != nullptr;
    by_place = one;
  }
  return ambiguous ? nullptr : by_place;
}

// One that stops meanwhile may be found twice, but is not missed.
std::vector<SpeculationStats> LiveSpeculators::stats() {
  std::vector<SpeculationStats> out;
  for (auto& entry : all_) {
    const LiveSpeculator* const one = entry.load(std::memory_order_acquire);
    if (one != nullptr) out.push_back(one->stats());
  }
  {
    const std::lock_guard lock(mutex_);
    out.insert(out.end(), past_.begin(), past_.end());
  }
  using Stats = const SpeculationStats&;
  std::sort(out.begin(), out.end(), [](Stats a, Stats b) { return a.number < b.number; });
  const auto same = [](Stats a, Stats b) { return a.number == b.number; };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

}  // namespace sealane::serve
