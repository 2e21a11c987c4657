// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/predict/tournament.h"

#include <algorithm>
#include <utility>

#include "core/predict/interleaved.h"
#include "core/predict/markov.h"
#include "core/predict/repetition.h"
#include "core/predict/swap_order.h"

namespace sealane {
namespace {

constexpr double kSlow = 1.0 / 16;  // weight of one copy in a score
constexpr double kFast = 1.0 / 4;
constexpr double kBytesDecay = 1.0 / 8;  // and in the mean length: a program goes on to other work
constexpr double kWeightMin = 0.25;      // of a copy that is small beside the others
constexpr double kMargin = 0.1;          // by which a challenger must be better
constexpr size_t kMore = 16;             // guesses of the second best looked at
constexpr double kTie = 0.01;            // as good as equal: the one listed first is preferred

}  // namespace

Tournament::Tournament(const PredictLimits& limits)
    : limits_(limits), buffers_(limits.transfers_max) {
  const size_t history_max = std::max<size_t>(limits.transfers_max, 128);
  const auto enter = [this](auto predictor) { contestants_.push_back(std::move(predictor)); };
  // Of equally good ones the first leads.
  enter(std::make_unique<Repetition>(buffers_, history_max));
  enter(std::make_unique<Repetition>(buffers_, history_max, Repetition::Split::by_size));
  enter(std::make_unique<Interleaved>(buffers_, history_max));
  enter(std::make_unique<SwapOrder>(buffers_, SwapOrder::Order::fifo));
  enter(std::make_unique<SwapOrder>(buffers_, SwapOrder::Order::lifo));
  enter(std::make_unique<SwapOrder>(buffers_, SwapOrder::Order::lifo_grouped));
  auto sequential = std::make_unique<Sequential>();
  sequential_ = sequential.get();
  enter(std::move(sequential));
  enter(std::make_unique<Markov>(buffers_, 2 * history_max));
  for (const auto& contestant : contestants_) scores_.push_back({contestant->name()});
}

void Tournament::observe(const Transfer& transfer) {
  if (!carries_bytes(transfer.host)) return;
  if (transfer.direction == Direction::to_device) judge(transfer.host);
  for (const auto& contestant : contestants_) contestant->observe(transfer);
  elect();
}

void Tournament::judge(const Range& requested) {
  const auto bytes = static_cast<double>(requested.bytes);
  bytes_mean_ += (bytes - bytes_mean_) * (bytes_mean_ == 0 ? 1 : kBytesDecay);
  const double weight = std::clamp(bytes / bytes_mean_, kWeightMin, 1.0);
  for (size_t i = 0; i < contestants_.size(); ++i) {
    const size_t place = place_of(requested, *contestants_[i]);
    const bool hit = place < kLeeway;
    Score& score = scores_[i];
    ++(hit ? score.hits : score.misses);
    const double worth = hit ? 1.0 / static_cast<double>(1 << place) : 0.0;
    score.slow += (worth - score.slow) * weight * kSlow;
    score.fast += (worth - score.fast) * weight * kFast;
  }
}

// At which place of its guesses, kLeeway if it is not among them. Most are right or silent at the
// first, so that one is asked for alone.
size_t Tournament::place_of(const Range& requested, const Predictor& contestant) {
  std::array<Guess, kLeeway> guesses;
  size_t count = contestant.predict(std::span(guesses).first(1));
  if (count == 0) return kLeeway;
  if (guesses[0].host == requested) return 0;
  count = contestant.predict(guesses);
  size_t place = 1;
  while (place < count && guesses[place].host != requested) ++place;
  return place < count ? place : kLeeway;
}

// Who may speak is decided by the better mean, who takes over from whom by the slow one: a lucky
// run is enough to be heard, not to depose.
void Tournament::elect() {
  if (leader_ != kNobody && scores_[leader_].recent_hit_rate() < limits_.silent_below) {
    leader_ = kNobody;
  }
  if (leader_ == kNobody) {
    const size_t best = best_by([](const Score& score) { return score.recent_hit_rate(); });
    if (scores_[best].recent_hit_rate() >= limits_.speak_at) leader_ = best;
    return;
  }
  const size_t best = best_by([](const Score& score) { return score.slow; });
  const double ahead = scores_[best].slow - scores_[leader_].slow;
  const bool may_speak = scores_[best].recent_hit_rate() >= limits_.speak_at;
  if (may_speak && (ahead > kMargin || (best < leader_ && ahead > -kTie))) leader_ = best;
}

// Of those as good as equal the one listed first.
size_t Tournament::best_by(double (*rate)(const Score&)) const {
  size_t best = 0;
  for (size_t i = 1; i < scores_.size(); ++i) {
    if (rate(scores_[i]) > rate(scores_[best]) + kTie) best = i;
  }
  return best;
}

size_t Tournament::predict(std::span<Guess> next) {
  if (leader_ == kNobody) return 0;
  size_t count = contestants_[leader_]->predict(next);
  const auto trust = [&](size_t who) { return static_cast<float>(scores_[who].recent_hit_rate()); };
  for (Guess& guess : next.first(count)) guess.confidence *= trust(leader_);
  const size_t second = count < next.size() ? second_best() : kNobody;
  if (second == kNobody) return count;
  std::array<Guess, kMore> more;
  for (const Guess& guess : std::span(more).first(contestants_[second]->predict(more))) {
    const auto said = next.first(count);
    const bool new_one = std::none_of(said.begin(), said.end(),
                                      [&](const Guess& each) { return each.host == guess.host; });
    if (new_one && count < next.size())
      next[count++] = {guess.host, guess.confidence * trust(second)};
  }
  return count;
}

// Besides the leader, if it has been right often enough to lead.
size_t Tournament::second_best() const {
  size_t best = kNobody;
  for (size_t i = 0; i < scores_.size(); ++i) {
    if (i == leader_ || scores_[i].recent_hit_rate() < limits_.speak_at) continue;
    if (best == kNobody || scores_[i].slow > scores_[best].slow + kTie) best = i;
  }
  return best;
}

void Tournament::allow(const Range& mapped) { sequential_->allow(mapped); }

void Tournament::forget(const Range& freed) {
  for (const auto& contestant : contestants_) contestant->forget(freed);
}

std::string_view Tournament::leader() const {
  return leader_ == kNobody ? std::string_view{} : scores_[leader_].name;
}

}  // namespace sealane
