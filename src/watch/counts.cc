// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/counts.h"

#include <bit>
#include <functional>

namespace sealane::serve {
namespace {

using Words = std::array<uint64_t, sizeof(Counts) / sizeof(uint64_t)>;
static_assert(sizeof(Words) == sizeof(Counts), "words and nothing else");

template <typename Operation>
Counts each_word(const Counts& left, const Counts& right, Operation operation) {
  const auto one = std::bit_cast<Words>(left);
  const auto other = std::bit_cast<Words>(right);
  Words out;
  for (size_t i = 0; i < out.size(); ++i) out[i] = operation(one[i], other[i]);
  return std::bit_cast<Counts>(out);
}

double part_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string_view to_string(Route route) {
  constexpr std::array<std::string_view, kRoutes> kNames = {
      "carried",       "passed",          "passed_capture",   "passed_shape",
      "passed_memory", "passed_pageable", "passed_too_large", "passed_aside"};
  return kNames[static_cast<size_t>(route)];
}

std::string_view to_string(Answer answer) {
  constexpr std::array<std::string_view, kAnswers> kNames = {"libcrypto", "engine", "parallel",
                                                             "worker", "slot"};
  return kNames[static_cast<size_t>(answer)];
}

std::string_view to_string(Direction direction) {
  return direction == Direction::to_device ? "to_device" : "to_host";
}

Tally& Tally::operator+=(const Tally& other) {
  count += other.count;
  bytes += other.bytes;
  ns += other.ns;
  failed += other.failed;
  return *this;
}

Tally Counts::copies_of(Direction direction) const {
  Tally sum{};
  for (const auto& by_memory : copies[static_cast<size_t>(direction)]) {
    for (const auto& by_route : by_memory) {
      for (const Tally& tally : by_route) sum += tally;
    }
  }
  return sum;
}

Tally Counts::copies_by(Direction direction, Route route) const {
  Tally sum{};
  for (const auto& by_memory : copies[static_cast<size_t>(direction)]) {
    for (const auto& by_route : by_memory) sum += by_route[static_cast<size_t>(route)];
  }
  return sum;
}

double Counts::hit_rate() const {
  Tally all{};
  for (const Tally& tally : messages[0]) all += tally;
  const uint64_t hits = messages[0][static_cast<size_t>(Answer::slot)].bytes;
  return part_of(hits, all.bytes);
}

LaneCounts Counts::lane_sum() const {
  Counts sum{};
  for (const LaneCounts& lane : lanes) {
    Counts one{};
    one.lanes[0] = lane;
    sum += one;
  }
  return sum.lanes[0];
}

double LaneCounts::foreseen_rate() const { return part_of(pipeline.hits, pipeline.requests); }

double LaneCounts::hit_rate() const { return part_of(messages_ahead, pipeline.messages); }

Counts& Counts::operator+=(const Counts& other) {
  return *this = each_word(*this, other, std::plus<>());
}

Counts Counts::operator-(const Counts& earlier) const {
  return each_word(*this, earlier, std::minus<>());
}

}  // namespace sealane::serve
