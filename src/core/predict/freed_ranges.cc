// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/predict/freed_ranges.h"

#include <algorithm>

namespace sealane {

void FreedRanges::add(const Range& freed) {
  Piece piece{freed.address, freed.end()};
  const size_t at = first_ending_after(piece.start);
  size_t last = at;
  while (last < count_ && pieces_[last].start < piece.end) ++last;
  if (last > at) {
    piece.start = std::min(piece.start, pieces_[at].start);
    piece.end = std::max(piece.end, pieces_[last - 1].end);
    remove(at, last - at);
  }
  insert(at, piece);
  if (count_ > kMax) join_nearest();
}

void FreedRanges::erase(const Range& seen) {
  size_t at = first_ending_after(seen.address);
  while (at < count_ && pieces_[at].start < seen.end()) {
    const Piece piece = pieces_[at];
    remove(at, 1);
    if (piece.start < seen.address) insert(at++, {piece.start, seen.address});
    if (seen.end() < piece.end) insert(at++, {seen.end(), piece.end});
  }
  if (count_ > kMax) join_nearest();
}

bool FreedRanges::overlaps(const Range& range) const {
  const size_t at = first_ending_after(range.address);
  return at < count_ && pieces_[at].start < range.end();
}

size_t FreedRanges::first_ending_after(uint64_t address) const {
  const auto* end = pieces_.data() + count_;
  return static_cast<size_t>(
      std::partition_point(pieces_.data(), end,
                           [&](const Piece& piece) { return piece.end <= address; }) -
      pieces_.data());
}

void FreedRanges::insert(size_t at, Piece piece) {
  std::move_backward(pieces_.data() + at, pieces_.data() + count_, pieces_.data() + count_ + 1);
  pieces_[at] = piece;
  ++count_;
}

void FreedRanges::remove(size_t at, size_t count) {
  std::move(pieces_.data() + at + count, pieces_.data() + count_, pieces_.data() + at);
  count_ -= count;
}

void FreedRanges::join_nearest() {
  size_t best = 1;
  for (size_t i = 2; i < count_; ++i) {
    const uint64_t gap = pieces_[i].start - pieces_[i - 1].end;
    if (gap < pieces_[best].start - pieces_[best - 1].end) best = i;
  }
  pieces_[best - 1].end = pieces_[best].end;
  remove(best, 1);
}

}  // namespace sealane
