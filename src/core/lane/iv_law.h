// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How a position becomes an IV: a 96-bit counter XOR a constant mask. Dword 0 of the counter is
// the message counter, dwords 1-2 the channel counter, little-endian. On our own lanes mask and
// channel come from the key schedule; on a GPU lane they are the driver's.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "core/lane/limits.h"
#include "seal/aead.h"

namespace sealane {

struct IvLaw {
  Iv mask{};
  uint64_t channel = 0;

  Iv iv(uint64_t position) const {
    Iv counter;
    store_le(counter.data(), static_cast<uint32_t>(position));
    store_le(counter.data() + 4, channel + (position >> 32));
    for (size_t i = 0; i < kIvBytes; ++i) counter[i] ^= mask[i];
    return counter;
  }
};

}  // namespace sealane
