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
  double link_ns_per_byte = 0.018;    // beside the lane, which works on the next message
  double guard_ns_per_byte = 0.018;   // to arm
  double rewrite_ns_per_byte = 0.16;  // what the program pays to write to guarded pages
  double digest_ns_per_byte = 0.1;    // to read and digest memory, one core
  double guard_check_ns_per_byte = 0.0003;
  double shared_core = 0;  // the share of a worker's time that the program's threads lose to it
  uint32_t workers = 4;    // they and the lane share each message: sealing it and sending it

  static Duration bytes_time(double ns_per_byte, uint64_t bytes) {
    return Duration(static_cast<int64_t>(ns_per_byte * static_cast<double>(bytes)));
  }
  Duration seal(uint64_t bytes) const { return bytes_time(seal_ns_per_byte, bytes); }
  // To ask the guard of a copy of `messages` messages, in the request. Digests are compared by all
  // workers and the lane, each message by one of them.
  Duration check(bool digest, uint64_t bytes, uint64_t messages) const {
    if (!digest) return bytes_time(guard_check_ns_per_byte, bytes);
    const uint64_t in_turn = (messages + workers) / (workers + 1);
    return bytes_time(digest_ns_per_byte, bytes / messages * in_turn);
  }

  // More than a few bring little on a small machine, half of a large one still do: the others may
  // seal ahead while something is sent.
  uint32_t spare_while_sending() const {
    return workers - std::min(workers, std::max(3u, workers / 2));
  }
  // Whether sending a record sealed elsewhere is cheaper for the lane than sealing it then, by
  // enough to be worth waiting for a worker. It is one more pass over the bytes: where cores are
  // shared, the program's threads pay for that.
  bool slots_pay() const {
    const double sealed_then = seal_ns_per_byte / (workers + 1);
    return publish_ns_per_byte() + shared_core * copy_ns_per_byte < sealed_then * kWorthWaiting;
  }

  // Whether workers that share each message have nearly the time to seal another one while the lane
  // does what it must do alone. Else sealing ahead would keep pace only at the lane's expense.
  bool sealing_fits_between() const { return message * (workers + 1) >= seal(1_MiB) * 3 / 4; }

  Duration link(uint64_t bytes) const { return bytes_time(link_ns_per_byte, bytes); }

  // A copy of `messages` messages, `bytes` in all, sealed when it is asked for.
  Duration live(uint64_t bytes, uint64_t messages) const {
    return seal(bytes) / (workers + 1) + message * static_cast<int64_t>(messages);
  }
  // The same copy from slots.
  Duration ready(uint64_t bytes, uint64_t messages) const {
    return bytes_time(publish_ns_per_byte(), bytes) + message * static_cast<int64_t>(messages);
  }
  // What slots save of it.
  Duration gain(uint64_t bytes, uint64_t messages) const {
    return live(bytes, messages) - ready(bytes, messages);
  }
  // What slots save whoever waits for such a copy. Behind the first message the link may be the
  // bound, with or without them.
  Duration saved_waiting(uint64_t bytes, uint64_t messages, bool digests) const {
    const auto count = static_cast<int64_t>(messages);
    const Duration wire = link(bytes) / count;
    const Duration now = live(bytes, messages) / count;
    const Duration slot = ready(bytes, messages) / count;
    return now - slot + (std::max(wire, now) - std::max(wire, slot)) * (count - 1) -
           check(digests, bytes, messages);
  }

 private:
  static constexpr double kWorthWaiting = 0.875;

  double publish_ns_per_byte() const { return copy_ns_per_byte / (workers + 1); }
};

}  // namespace sealane
