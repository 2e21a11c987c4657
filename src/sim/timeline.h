// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Who was busy with what from when to when, for people to look at. Off unless somebody asks for it,
// and bounded: what is beyond the limit is left out.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"

namespace sealane::sim {

enum class Track : uint8_t { thread, stream, worker, lane, driver, link_to_device, link_to_host };

struct Span {
  Track track{};
  uint32_t index = 0;     // of the thread, stream, worker or lane
  const char* what = "";  // a literal
  uint64_t bytes = 0;
  Instant from{};
  Instant until{};
};

class Timeline {
 public:
  explicit Timeline(size_t spans_max) : spans_max_(spans_max) {}

  void add(const Span& span) {
    if (spans_.size() < spans_max_ && span.until > span.from) spans_.push_back(span);
  }
  const std::vector<Span>& spans() const { return spans_; }

 private:
  size_t spans_max_;
  std::vector<Span> spans_;
};

}  // namespace sealane::sim
