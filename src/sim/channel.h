// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One sealed channel to the device: the driver's counter and key, messages of its own in between,
// and what the bus does to the next record.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/sim.h"

namespace sealane::sim {

struct Channel {
  uint32_t epoch = 0;
  uint64_t position = 0;         // the driver's next
  uint64_t key_bytes = 0;        // sealed under the key
  uint32_t driver_messages = 0;  // that it is about to send
  bool rotates = false;          // before its next message
};

}  // namespace sealane::sim
