// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/predict/sequential.h"

#include <algorithm>

namespace sealane {
namespace {

constexpr uint64_t kStrideLengthsMax = 64;  // a stride is at most so many lengths

// The range one stride after `range`; carries no bytes if there is none.
Range one_further(const Range& range, uint64_t stride) {
  const bool down = stride > UINT64_MAX / 2;
  const uint64_t address = range.address + stride;
  if (down ? address > range.address : address < range.address) return {};
  const Range next{address, range.bytes};
  return carries_bytes(next) ? next : Range{};
}

}  // namespace

void Sequential::observe(const Transfer& transfer) {
  const Range& range = transfer.host;
  if (!carries_bytes(range)) return;
  ++clock_;
  if (transfer.direction == Direction::to_host) return;
  if (Stream* stream = expecting(range)) {
    go_on(*stream, range);
  } else if (Stream* young = young_near(range)) {
    young->stride = range.address - young->last.address;
    young->last = range;
    young->clock = clock_;
  } else {
    least_worth() = {range, range.bytes, clock_, 1, 0};
  }
}

void Sequential::go_on(Stream& stream, const Range& range) {
  const bool contiguous = stream.stride == stream.last.bytes;
  if (contiguous) stream.stride = range.bytes;  // the length may change, the rule does not
  stream.confidence = std::min(stream.confidence + 1, kConfidenceMax);
  stream.gap = clock_ - stream.clock;
  stream.clock = clock_;
  stream.last = range;
}

Sequential::Stream* Sequential::expecting(const Range& range) {
  for (Stream& stream : streams_) {
    if (stream.last.bytes > 0 && stream.last.address + stream.stride == range.address) {
      return &stream;
    }
  }
  return nullptr;
}

Sequential::Stream* Sequential::young_near(const Range& range) {
  for (Stream& stream : streams_) {
    if (stream.confidence > 0 || stream.last.bytes != range.bytes) continue;
    const uint64_t up = range.address - stream.last.address;
    const uint64_t distance = std::min(up, -up);
    if (distance > 0 && distance / kStrideLengthsMax <= range.bytes) return &stream;
  }
  return nullptr;
}

// A young stream before one that has proved itself, unless that one has ended.
Sequential::Stream& Sequential::least_worth() {
  const auto rank = [&](const Stream& stream) {
    const bool keep =
        stream.confidence > 0 && !is_overdue(stream.clock + stream.gap, 8 * stream.gap, clock_);
    return (uint64_t{keep} << 32) + UINT32_MAX - (clock_ - stream.clock);
  };
  return *std::min_element(streams_.begin(), streams_.end(),
                           [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

size_t Sequential::predict(std::span<Guess> next) const {
  std::array<Turn, kStreamsMax> turns;
  std::array<Range, kStreamsMax> expected;
  const auto step = [&](Turn& turn, const Range& from) {
    expected[turn.stream] = one_further(from, streams_[turn.stream].stride);
    turn.due += streams_[turn.stream].gap;
    turn.ended = !carries_bytes(expected[turn.stream]) || !mapped_.contains(expected[turn.stream]);
  };
  for (uint32_t i = 0; i < kStreamsMax; ++i) {
    const Stream& stream = streams_[i];
    turns[i] = {0, i, stream.clock, 0, true};
    if (stream.confidence == 0) continue;
    if (is_overdue(stream.clock + stream.gap, stream.gap, clock_)) continue;
    step(turns[i], stream.last);
    turns[i].expect_from(clock_ + 1);
  }
  size_t count = 0;
  while (count < next.size()) {
    Turn* turn = soonest(turns);
    if (turn == nullptr) break;
    const Stream& stream = streams_[turn->stream];
    const Range range = expected[turn->stream];
    next[count++] = {range, confidence_of(stream.confidence, kConfidenceMax)};
    step(*turn, range);
  }
  return count;
}

void Sequential::allow(const Range& mapped) {
  if (carries_bytes(mapped)) mapped_.add(mapped);
}

void Sequential::forget(const Range& freed) {
  mapped_.erase({freed.address, std::min(freed.bytes, UINT64_MAX - freed.address)});
}

}  // namespace sealane
