// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What every byte of host memory holds, without holding it: each write gives its range a new
// version, and the content of a range is a fingerprint of the versions in it. Exact to the byte.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "core/copy.h"

namespace sealane::sim {

class Memory {
 public:
  // The range holds something it never held before. Returns the version.
  uint64_t write(const Range& range) {
    write(range, ++versions_);
    return versions_;
  }
  void write(const Range& range, uint64_t version) {
    if (range.bytes == 0) return;
    split(range.address);
    split(range.end());
    auto first = spans_.lower_bound(range.address);
    const auto last = spans_.lower_bound(range.end());
    while (first != last) first = spans_.erase(first);
    spans_[range.address] = version;
  }

  uint64_t fingerprint(const Range& range) const {
    uint64_t hash = 0xcbf29ce484222325;
    auto span = spans_.upper_bound(range.address);
    uint64_t at = range.address;
    uint64_t version = span == spans_.begin() ? 0 : std::prev(span)->second;
    for (;;) {
      hash = mix(mix(hash ^ (at - range.address)) ^ version);
      while (span != spans_.end() && span->second == version) ++span;  // one content, cut in two
      if (span == spans_.end() || span->first >= range.end()) return hash;
      at = span->first;
      version = (span++)->second;
    }
  }

  // Whether a byte of the range has this version.
  bool any(const Range& range, uint64_t version) const {
    auto span = spans_.upper_bound(range.address);
    if ((span == spans_.begin() ? 0 : std::prev(span)->second) == version) return true;
    for (; span != spans_.end() && span->first < range.end(); ++span) {
      if (span->second == version) return true;
    }
    return false;
  }

  // A fingerprint that equals no content.
  uint64_t garbage() { return mix(++versions_ ^ 0x5ea1a4e0bad0bad); }

  static uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93;
    x ^= x >> 32;
    return x * 0xd6e8feb86659fd93;
  }

 private:
  void split(uint64_t address) {
    auto next = spans_.lower_bound(address);
    if (next != spans_.end() && next->first == address) return;
    spans_.emplace_hint(next, address, next == spans_.begin() ? 0 : std::prev(next)->second);
  }

  std::map<uint64_t, uint64_t> spans_;  // where a version begins; it goes on to the next
  uint64_t versions_ = 0;
};

}  // namespace sealane::sim
