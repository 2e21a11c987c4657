// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One sealed channel to the device: the driver's counter and key, and messages of its own in
// between.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "core/lane/iv_law.h"

namespace sealane::sim {

// The law of a key: every second one keeps the mask of the one before.
inline IvLaw law_of(uint32_t epoch) {
  IvLaw law;
  store_le(law.mask.data(), (epoch / 2 + 1) * uint32_t{0x9e3779b9});
  store_le(law.mask.data() + 4, (epoch / 2 + 1) * uint64_t{0xbf58476d1ce4e5b9});
  return law;
}
inline uint64_t position_of(const Iv& iv, uint32_t epoch) {
  return load_le<uint32_t>(iv.data()) ^ load_le<uint32_t>(law_of(epoch).mask.data());
}

struct Channel {
  uint32_t epoch = 0;
  uint64_t position = 0;         // the driver's next
  uint64_t key_bytes = 0;        // sealed under the key
  uint32_t driver_messages = 0;  // that it is about to send
  bool rotates = false;          // before its next message
  bool staged = false;           // the driver seals from memory of its own

  uint64_t key() const { return epoch + 1; }
  Iv iv() const { return law_of(epoch).iv(position); }  // of its next message
};

}  // namespace sealane::sim
