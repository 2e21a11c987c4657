// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether sealing ahead can pay on a machine, worked out before anything has been copied: the most
// a slot can save, against what it costs to be wrong. Where it does not pay by throughput it may
// still pay by latency, for a program that waits for its copies: whether this one does is observed
// (waited_copies.h). Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"
#include "core/pipeline/costs.h"

namespace sealane {

// What a message of a bulk copy takes the lane, if the lane and all workers share it.
struct SpeculationOutlook {
  // A slot saves the lane time, but costs the machine a second pass over the bytes, sealed when
  // they might not be needed, and the program its pinned memory. MEASURED by `sealane bench copy`
  // on the emulated h100-tdx: up to 1.5 times nothing came of it.
  static constexpr double kMargin = 1.75;

  // Less than this nobody would notice.
  static constexpr double kWaitedMargin = 1.08;

  // One after the other, as many as the program likes: the link carries one message while the lane
  // works on the next.
  Duration sealed_now{};  // when it is asked for
  Duration from_slot{};   // the guard's answer included
  // One alone, until it is across.
  Duration waited_now{};
  Duration waited_slot{};

  bool pays() const { return exceeds(sealed_now, kMargin, from_slot); }
  bool pays_if_waited() const { return pays() || exceeds(waited_now, kWaitedMargin, waited_slot); }

 private:
  static bool exceeds(Duration whole, double times, Duration part) {
    return static_cast<double>(whole.count()) >= times * static_cast<double>(part.count());
  }
};

// `digests`: pages cannot be protected, so every request reads its source again.
inline SpeculationOutlook speculation_outlook(const Costs& costs, bool digests) {
  constexpr uint64_t kBytes = 1_MiB;
  const Duration link = costs.link(kBytes);
  const Duration now = costs.live(kBytes, 1);
  const Duration ready = costs.ready(kBytes, 1);
  const Duration check = costs.check(digests, kBytes, 1);
  SpeculationOutlook outlook;
  outlook.sealed_now = std::max(link, now);
  outlook.from_slot = std::max(link, ready) + check;
  outlook.waited_now = now + link;
  outlook.waited_slot = ready + link + check;
  return outlook;
}

}  // namespace sealane
