// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/predict/repetition.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace sealane {
namespace {

constexpr size_t kCandidates = 8;  // occurrences compared when the match is lost
constexpr size_t kPastCompared = 32;
constexpr size_t kTurnsMax = 12;  // streams merged, a bound on the work of one guess

}  // namespace

Repetition::Repetition(BufferTable& buffers, size_t history_max, Split split)
    : buffers_(buffers),
      split_(split),
      history_(std::bit_ceil(history_max)),
      latest_(buffers.capacity()) {
  SEALANE_CHECK(history_max > 1 && history_.size() < kOnce / 2, "history out of range");
}

std::string_view Repetition::name() const {
  return split_ == Split::none ? "repetition" : "repetition-by-size";
}

void Repetition::observe(const Transfer& transfer) {
  const BufferId id = buffers_.intern(transfer.host);
  if (!id.valid()) return;
  if (split_ == Split::by_size && transfer.direction == Direction::to_host) return;

  Latest& latest = latest_[id.slot];
  if (latest.generation != id.generation) latest = {id.generation, {0, 0}};
  uint32_t& at = latest.at[static_cast<size_t>(transfer.direction)];
  if (at == 0) {
    at = kOnce;
    return;
  }
  if (newest_ == kOnce - 1) restart();
  append(transfer, id, at == kOnce ? 0 : at);
  at = newest_;
}

void Repetition::append(const Transfer& transfer, BufferId id, uint32_t same_before) {
  const size_t index = stream_of(transfer.host);
  Stream& stream = streams_[index];
  streams_used_ |= uint64_t{1} << index;
  // Noise, if it has a stream of its own, does not count as time: it comes when it likes.
  if (stream.accuracy >= kSure / 2) ++clock_;
  const uint32_t position = ++newest_;
  entry(position) = {id, transfer.direction, same_before, stream.head, 0, clock_};
  if (held(stream.head)) entry(stream.head).next = position;
  follow(stream, position);
  stream.head = position;
}

void Repetition::follow(Stream& stream, uint32_t position) {
  const uint32_t expected = held(stream.match) ? entry(stream.match).next : 0;
  const bool right = expected != 0 && same_copy(expected, position);
  if (expected != 0) stream.accuracy += ((right ? kSure : 0) - stream.accuracy) / 4;
  stream.match = right ? expected : best_match(position);
}

// Of equally good places the latest.
uint32_t Repetition::best_match(uint32_t position) const {
  uint32_t best = 0;
  size_t best_length = 0;
  uint32_t candidate = entry(position).same_before;
  for (size_t i = 0; i < kCandidates && held(candidate); ++i) {
    const size_t length = common_past(position, candidate);
    if (length > best_length) {
      best = candidate;
      best_length = length;
    }
    candidate = entry(candidate).same_before;
  }
  return best;
}

size_t Repetition::common_past(uint32_t a, uint32_t b) const {
  size_t length = 0;
  while (length < kPastCompared && held(a) && held(b) && same_copy(a, b)) {
    ++length;
    a = entry(a).previous;
    b = entry(b).previous;
  }
  return length;
}

// Positions are about to run out, after four billion copies: begin anew.
void Repetition::restart() {
  std::fill(latest_.begin(), latest_.end(), Latest{});
  streams_ = {};
  streams_used_ = newest_ = 0;
}

size_t Repetition::predict(std::span<Guess> next) const {
  std::array<Turn, kTurnsMax> room;
  const std::span<Turn> turns(room.data(), open_turns(room));
  size_t count = 0;
  // Copies to the host and ended ids are stepped over, but not for ever.
  for (size_t steps = 4 * next.size(); steps > 0 && count < next.size(); --steps) {
    Turn* turn = soonest(turns);
    if (turn == nullptr) break;
    const Entry& expected = entry(turn->at);
    if (expected.direction == Direction::to_device && buffers_.alive(expected.id)) {
      const float sure = static_cast<float>(streams_[turn->stream].accuracy) / kSure;
      next[count++] = {buffers_.range(expected.id), sure};
    }
    turn->ended = !advance(*turn);
  }
  return count;
}

// The streams whose match has mostly been right, each at what it expects next.
size_t Repetition::open_turns(std::span<Turn> turns) const {
  size_t count = 0;
  for (uint64_t left = streams_used_; left != 0 && count < turns.size(); left &= left - 1) {
    const auto index = static_cast<uint32_t>(std::countr_zero(left));
    const Stream& stream = streams_[index];
    if (stream.accuracy < kSure / 2 || !held(stream.match) || !held(stream.head)) continue;
    Turn turn{stream.head, index, entry(stream.head).clock};
    const uint32_t last_seen = turn.due;
    if (!advance(turn) || is_overdue(turn.due, turn.due - last_seen, clock_)) continue;
    turn.expect_from(clock_ + 1);
    turns[count++] = turn;
  }
  return count;
}

// The present continues as the match did: behind the head comes what came behind the match.
bool Repetition::advance(Turn& turn) const {
  const Stream& stream = streams_[turn.stream];
  const Entry& here = entry(turn.at == stream.head ? stream.match : turn.at);
  if (here.next == 0) return false;
  turn.at = here.next;
  turn.due += entry(here.next).clock - here.clock;
  return true;
}

bool Repetition::held(uint32_t position) const {
  return position != 0 && newest_ - position < history_.size();
}

bool Repetition::same_copy(uint32_t a, uint32_t b) const {
  return entry(a).id == entry(b).id && entry(a).direction == entry(b).direction;
}

size_t Repetition::stream_of(const Range& range) const {
  return split_ == Split::none ? 0 : size_class_of(range);
}

}  // namespace sealane
