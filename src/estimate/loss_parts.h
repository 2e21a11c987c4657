// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a loss goes. The same run on a machine where launches cost what they cost without CC, then
// on one where copies do too: what the first gives back are launches, what the second gives back
// are copies, and what is still lost is waiting: callers that block until their stream has drained,
// copies that take turns. The three add up to the loss.
//
// Pure, any thread.
#pragma once

#include "platform/platform.h"

namespace sealane::estimate {

struct LossParts {
  double launches = 0;  // points of the loss; Sealane does not take these away
  double copies = 0;
  double waiting = 0;
};

// Launches, other calls and kernels as fast as with CC off.
Platform with_open_launches(const Platform& platform);
// And a copy of the driver's as fast as with CC off, by itself.
Platform with_open_copies(const Platform& platform);

}  // namespace sealane::estimate
