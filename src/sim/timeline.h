// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Who was busy with what from when to when, for people to look at. Off unless somebody asks for it,
// and bounded: the latest are kept, because a run begins with what is not typical of it.
#pragma once

#include <algorithm>
#include <cstddef>
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
    if (spans_max_ == 0 || span.until <= span.from) return;
    if (spans_.size() < spans_max_) {
      spans_.push_back(span);
    } else {
      spans_[added_ % spans_max_] = span;
    }
    ++added_;
  }

  // In the order they were added.
  std::vector<Span> spans() const {
    std::vector<Span> result(spans_);
    if (added_ > spans_max_ && spans_max_ > 0) {
      std::rotate(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(added_ % spans_max_),
                  result.end());
    }
    return result;
  }

 private:
  size_t spans_max_;
  size_t added_ = 0;
  std::vector<Span> spans_;
};

}  // namespace sealane::sim
