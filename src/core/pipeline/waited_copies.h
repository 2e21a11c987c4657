// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does the program wait for its copies? One that asks for the next only when all before it have
// arrived runs in step with them: whatever a copy takes longer, it takes longer. One that asks for
// the next while others are under way has something else to do, or waits for the last of many, and
// what counts for it is how many go through (outlook.h). So of every copy that found nothing under
// way it is counted what a slot would have saved, against the time that passes: where that is a
// share people notice, sealing ahead pays, although it would not by throughput.
//
// It is counted in the same way while copies are sealed ahead: they still find nothing under way.
// Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace sealane {

class WaitedCopies {
 public:
  static constexpr uint32_t kSeenMin = 8;    // before anything is believed
  static constexpr int64_t kOpenShare = 64;  // of the time; once open
  static constexpr int64_t kStayShare = 96;  //   this much is enough

  // A bulk copy is asked for. `saved`: by a slot, if nothing was under way; else 0.
  void observe(Duration saved, Instant now) {
    if (last_) passed_ = faded(passed_) + (now - *last_);
    if (last_) saved_ = faded(saved_) + saved;
    last_ = now;
    if (seen_ < kSeenMin) ++seen_;
    open_ = seen_ == kSeenMin && saved_ * (open_ ? kStayShare : kOpenShare) >= passed_;
  }
  bool pay() const { return open_; }

 private:
  static Duration faded(Duration duration) { return duration * 15 / 16; }

  std::optional<Instant> last_;
  Duration passed_{0};  // in which copies were asked for, the latest counting most
  Duration saved_{0};   // by slots, if all of them had had one
  uint32_t seen_ = 0;
  bool open_ = false;
};

}  // namespace sealane
