// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// AES-256-GCM in parts. A message can be cut at multiples of 16 bytes; each part is sealed or
// opened alone, on any thread, in any order, and yields the hash of its ciphertext; joining the
// hashes in order gives the message's. So many cores work on one message, and a message may come in
// pieces.
//
// How a part starts in the middle with an engine that only knows whole messages: GCM derives its
// first counter block from an IV of unusual length by the hash itself, which can be solved for the
// IV that leads to the counter wanted; and from the tag of such a "message" its hash can be taken
// back. So the engine's fast path does all bytes, through its documented interface.
//
// Concurrency, aliasing, exposure: as seal/aead.h says of an Aead. Nothing compares tags here: the
// caller does, in constant time, and wipes what it must not deliver.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "seal/aead.h"
#include "seal/key.h"

namespace sealane {

constexpr size_t kGcmBlockBytes = 16;
using GcmBlock = std::array<uint8_t, kGcmBlockBytes>;

// An element of GCM's field, first byte most significant.
struct GcmHash {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const GcmHash&) const = default;
};

class SplitGcm {
 public:
  // nullptr if this build or CPU has no engine for it.
  static std::unique_ptr<SplitGcm> make(std::span<const uint8_t, Key::kBytes> key);
  virtual ~SplitGcm() = default;
  SplitGcm(const SplitGcm&) = delete;
  SplitGcm& operator=(const SplitGcm&) = delete;

  // The part that begins with this block of the message. Only the last part may end within a block.
  virtual GcmHash seal_part(const Iv& iv, uint64_t first_block, const uint8_t* in, uint8_t* out,
                            uint64_t bytes) const = 0;
  virtual GcmHash open_part(const Iv& iv, uint64_t first_block, const uint8_t* in, uint8_t* out,
                            uint64_t bytes) const = 0;
  virtual GcmBlock keystream(const Iv& iv, uint64_t block) const = 0;

  // `before`, then a part of so many blocks.
  virtual GcmHash join(const GcmHash& before, const GcmHash& part, uint64_t blocks) const = 0;
  virtual GcmHash join(const GcmHash& before, const GcmBlock& block) const = 0;
  virtual Tag tag(const Iv& iv, const GcmHash& hash, uint64_t additional_bytes,
                  uint64_t bytes) const = 0;

 protected:
  SplitGcm() = default;
};

}  // namespace sealane
