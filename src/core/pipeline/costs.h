// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the pipeline's choices cost on this machine. The driver of the core fills it in, from a
// platform file or from measurement; the core only compares.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"

namespace sealane {

struct Costs {
  double seal_ns_per_byte = 0.15;     // one worker
  double copy_ns_per_byte = 0.094;    // a ready slot into the bounce buffer, one core
  Duration message{8'000};            // each message, whatever its size
  Duration pad{10'000};               // a no-op message, the crossing included
  Duration toll{20'000};              // a crossing
  Duration scatter{3'000};            // one more small copy in a coalesced message
  double guard_ns_per_byte = 0.018;   // to arm
  double rewrite_ns_per_byte = 0.16;  // what the program pays to write to guarded pages
  double digest_ns_per_byte = 0.1;    // to check a digest guard, in the request
  double guard_check_ns_per_byte = 0.0003;
  double shared_core = 0;  // the share of a worker's time that the program's threads lose to it
  uint32_t workers = 4;
  bool split = false;  // the lane and all workers share each message: sealing it and sending it

  static Duration bytes_time(double ns_per_byte, uint64_t bytes) {
    return Duration(static_cast<int64_t>(ns_per_byte * static_cast<double>(bytes)));
  }
  Duration seal(uint64_t bytes) const { return bytes_time(seal_ns_per_byte, bytes); }
  // To ask a guard, in the request.
  Duration check(bool digest, uint64_t bytes) const {
    return bytes_time(digest ? digest_ns_per_byte : guard_check_ns_per_byte, bytes);
  }

  // Of the workers this many seal and the others help to publish, whatever moves most bytes. Where
  // all share each message: so many messages at a time, one of them about to begin.
  uint32_t sealers() const {
    if (split) return 2;
    uint32_t best = 1;
    for (uint32_t sealing = 2; sealing <= workers; ++sealing) {
      if (pace(sealing) < pace(best)) best = sealing;
    }
    return best;
  }
  uint32_t helpers() const {
    return split ? workers : std::min(workers - sealers(), helpers_max());
  }
  // When nothing that was requested is left to seal.
  uint32_t helpers_most() const { return std::min(workers, helpers_max()); }
  double publish_ns_per_byte() const { return publish_ns_per_byte(sealers()); }
  // Whether sending a record sealed elsewhere is cheaper for the lane than sealing it itself, by
  // enough to be worth waiting for a worker. It is one more pass over the bytes: where cores are
  // shared, the program's threads pay for that.
  bool slots_pay() const {
    const double alone = split ? seal_ns_per_byte / (workers + 1) : seal_ns_per_byte;
    return publish_ns_per_byte() + shared_core * copy_ns_per_byte < alone * kWorthWaiting;
  }

  // Whether workers that share each message have nearly the time to seal another one while the lane
  // does what it must do alone. Else sealing ahead would keep pace only at the lane's expense.
  bool sealing_fits_between() const { return message * (workers + 1) >= seal(1_MiB) * 3 / 4; }

  // A copy of `messages` messages, `bytes` in all, sealed now: the first message is sealed alone,
  // then sealing by all workers and publishing overlap.
  Duration live(uint64_t bytes, uint64_t messages) const {
    if (split) return seal(bytes) / (workers + 1) + message * static_cast<int64_t>(messages);
    return seal(bytes / messages) + std::max(ready(bytes, messages), seal(bytes) / (workers + 1));
  }
  // The same copy from slots.
  Duration ready(uint64_t bytes, uint64_t messages) const {
    return bytes_time(publish_ns_per_byte(), bytes) + message * static_cast<int64_t>(messages);
  }

 private:
  static constexpr double kWorthWaiting = 0.875;

  // More than a few bring little on a small machine; half of a large one still do.
  uint32_t helpers_max() const { return std::max(3u, workers / 2); }

  double publish_ns_per_byte(uint32_t sealing) const {
    if (split) return copy_ns_per_byte / (workers + 1);
    return copy_ns_per_byte / (1 + std::min(workers - sealing, helpers_max()));
  }
  double pace(uint32_t sealing) const {
    return std::max(seal_ns_per_byte / sealing, publish_ns_per_byte(sealing));
  }
};

}  // namespace sealane
