// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/read_book.h"

#include <algorithm>

namespace sealane::serve {

ReadId ReadBook::add(const Range& destination, const Range& inner, uint64_t memory) {
  reads_.push_back({++last_, destination, inner, memory, State::filling});
  return last_;
}

void ReadBook::remove(ReadId id) {
  std::erase_if(reads_, [&](const Read& read) { return read.id == id; });
}

ReadBook::Read* ReadBook::find(ReadId id) {
  const auto found =
      std::find_if(reads_.begin(), reads_.end(), [&](const Read& read) { return read.id == id; });
  return found != reads_.end() ? &*found : nullptr;
}

ReadBook::Filling ReadBook::find_filling(const Range& out) const {
  for (const Read& read : reads_) {
    const Range memory{read.memory, read.destination.bytes};
    if (read.state != State::filling || !memory.contains(out)) continue;
    const Range there{read.destination.address + (out.address - read.memory), out.bytes};
    return {read.id, read.inner.contains(there)};
  }
  return {};
}

bool ReadBook::land(ReadId id) {
  Read* read = find(id);
  if (read == nullptr || !put_off(read->destination).empty()) return false;
  read->state = State::landing;
  return true;
}

bool ReadBook::trap(ReadId id) {
  Read* read = find(id);
  if (read == nullptr) return false;
  read->state = State::trapped;
  return read->touched;
}

bool ReadBook::claim(ReadId id) {
  Read* read = find(id);
  if (read == nullptr || read->state != State::trapped) return false;
  read->state = State::opening;
  return true;
}

ReadBook::Touched ReadBook::touch(uint64_t address) {
  for (Read& read : reads_) {
    if (read.state == State::filling || !read.inner.contains({address, 1})) continue;
    read.touched = true;
    return {claim(read.id) ? Answer::open : Answer::wait, read.id};
  }
  return {};
}

std::vector<ReadId> ReadBook::put_off(const Range& range) const {
  std::vector<ReadId> found;
  for (const Read& read : reads_) {
    if (read.state != State::filling && read.destination.overlaps(range)) found.push_back(read.id);
  }
  return found;
}

}  // namespace sealane::serve
