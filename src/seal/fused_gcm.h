// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// AES-256-GCM that carries out a Delivery in the same loop. AES keeps one port of the core busy for
// 15 cycles per cache line and leaves those for loads, stores and sums idle: a pass over memory
// that would take as long as half of the AES alone costs next to nothing beside it.
//
// For messages of whole strides, on CPUs with VAES and AVX512; ipsec_mb.cc uses it where both hold.
// Concurrency, aliasing, exposure: as seal/aead.h says of an Aead. Nothing compares tags here.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "seal/aead.h"
#include "seal/delivery.h"

namespace sealane {

class FusedGcm {
 public:
  static constexpr size_t kStrideBytes = 256;
  static constexpr size_t kRoundKeysBytes = size_t{15} * 16;

  // nullptr if this CPU lacks the instructions.
  static std::unique_ptr<FusedGcm> make(std::span<const uint8_t, kRoundKeysBytes> round_keys);
  virtual ~FusedGcm() = default;
  FusedGcm(const FusedGcm&) = delete;
  FusedGcm& operator=(const FusedGcm&) = delete;

  // True if a message of that many bytes can be sealed or opened with that delivery.
  static bool fits(uint64_t bytes, const Delivery& delivery);

  // Opens, whether the tag is genuine or not, and returns the tag that would be. `beside` has
  // nothing to do with this message: it is of an earlier one, verified before.
  virtual Tag open(const Iv& iv, Bytes additional, Bytes ciphertext, MutableBytes plaintext,
                   const Delivery& beside) const = 0;

  // Carries out `source` and seals what it delivers.
  virtual Tag seal(const Iv& iv, Bytes additional, const Delivery& source,
                   MutableBytes ciphertext) const = 0;

 protected:
  FusedGcm() = default;
};

}  // namespace sealane
