// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <cstring>

#include "base/registers.h"
#include "seal/native.h"
#include "seal/split_gcm.h"

namespace sealane {

SplitGcm::SplitGcm(const GcmWidth& width, std::span<const uint8_t, Key::kBytes> key)
    : width_(width) {
  width_.schedule(*key_, key);
  std::array<GcmHash, kPowers>& powers = *powers_;
  const GcmBlock& first = key_->powers[GcmKey::kPowers - 1];
  std::memcpy(&powers[0].low, first.data(), sizeof powers[0].low);
  std::memcpy(&powers[0].high, first.data() + sizeof powers[0].low, sizeof powers[0].high);
  for (size_t k = 1; k < kPowers; ++k) {
    powers[k] = width_.join(&powers[k - 1], powers[k - 1], {}, 1);
  }
  clear_vector_registers();  // a compiler may move a power through one
}

std::unique_ptr<SplitGcm> SplitGcm::make(std::span<const uint8_t, Key::kBytes> key) {
  const GcmWidth* const width = native_width();
  return width != nullptr ? std::make_unique<SplitGcm>(*width, key) : nullptr;
}

GcmHash SplitGcm::seal_part(const Iv& iv, uint64_t first_block, const uint8_t* in, uint8_t* out,
                            uint64_t bytes) const {
  const bool streamed = in != out && bytes >= width_.streamed_bytes_min;
  return width_.seal(*key_, {iv, first_block, {}, in, out, bytes, streamed, nullptr});
}

GcmHash SplitGcm::open_part(const Iv& iv, uint64_t first_block, const uint8_t* in, uint8_t* out,
                            uint64_t bytes) const {
  return width_.open(*key_, {iv, first_block, {}, in, out, bytes, false, nullptr});
}

void SplitGcm::keystream(const Iv& iv, uint64_t block, GcmBlock& to) const {
  width_.encrypt(*key_, gcm_counter(iv, block + 2), to);
}

GcmHash SplitGcm::join(GcmHash before, GcmHash part, uint64_t blocks) const {
  return width_.join(powers_->data(), before, part, blocks);
}

GcmHash SplitGcm::join(GcmHash before, const GcmBlock& block) const {
  return width_.hash(*key_, before, block);
}

Tag SplitGcm::tag(const Iv& iv, GcmHash hash, uint64_t additional_bytes, uint64_t bytes) const {
  return width_.tag(*key_, iv, hash, additional_bytes, bytes);
}

}  // namespace sealane
