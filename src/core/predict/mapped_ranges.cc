// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/predict/mapped_ranges.h"

#include <algorithm>

namespace sealane {

// Pieces that touch become one.
void MappedRanges::add(const Range& mapped) {
  Piece piece{mapped.address, mapped.end()};
  const size_t at = first_ending_after(piece.start == 0 ? 0 : piece.start - 1);
  size_t last = at;
  while (last < count_ && pieces_[last].start <= piece.end) ++last;
  if (last > at) {
    piece.start = std::min(piece.start, pieces_[at].start);
    piece.end = std::max(piece.end, pieces_[last - 1].end);
    remove(at, last - at);
  }
  insert(at, piece);
  if (count_ > kMax) forget_shortest();
}

void MappedRanges::erase(const Range& freed) {
  size_t at = first_ending_after(freed.address);
  while (at < count_ && pieces_[at].start < freed.end()) {
    const Piece piece = pieces_[at];
    remove(at, 1);
    if (piece.start < freed.address) insert(at++, {piece.start, freed.address});
    if (freed.end() < piece.end) insert(at++, {freed.end(), piece.end});
  }
  if (count_ > kMax) forget_shortest();
}

bool MappedRanges::contains(const Range& range) const {
  const size_t at = first_ending_after(range.address);
  return at < count_ && pieces_[at].start <= range.address && range.end() <= pieces_[at].end;
}

size_t MappedRanges::first_ending_after(uint64_t address) const {
  const auto* end = pieces_.data() + count_;
  return static_cast<size_t>(
      std::partition_point(pieces_.data(), end,
                           [&](const Piece& piece) { return piece.end <= address; }) -
      pieces_.data());
}

void MappedRanges::insert(size_t at, Piece piece) {
  std::move_backward(pieces_.data() + at, pieces_.data() + count_, pieces_.data() + count_ + 1);
  pieces_[at] = piece;
  ++count_;
}

void MappedRanges::remove(size_t at, size_t count) {
  std::move(pieces_.data() + at + count, pieces_.data() + count_, pieces_.data() + at);
  count_ -= count;
}

void MappedRanges::forget_shortest() {
  const auto bytes = [](const Piece& piece) { return piece.end - piece.start; };
  const auto* shortest =
      std::min_element(pieces_.data(), pieces_.data() + count_,
                       [&](const Piece& a, const Piece& b) { return bytes(a) < bytes(b); });
  remove(static_cast<size_t>(shortest - pieces_.data()), 1);
}

}  // namespace sealane
