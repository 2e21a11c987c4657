// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Our own AES-256-GCM, one loop (gcm_loop.h) at three widths: VAES on 512 bits, VAES on 256 bits,
// AES-NI. A width is a file compiled for its instructions and a table of functions; everything else
// about a key and a message is the same for all, so a key that was scheduled serves any of them.
//
// The one thing a width does is a part of a message: blocks from a given counter on, and the hash
// of their ciphertext added to a hash so far. A whole message is its only part.
//
// Concurrency, aliasing, exposure: as seal/aead.h says of an Aead. Nothing compares tags here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/cpu.h"
#include "seal/aead.h"
#include "seal/key.h"

namespace sealane {

class PiecewiseDelivery;

constexpr size_t kGcmBlockBytes = 16;
using GcmBlock = std::array<uint8_t, kGcmBlockBytes>;

// An element of GCM's field, first byte most significant.
struct GcmHash {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const GcmHash&) const = default;
};

// A scheduled key, to be kept in secret memory. Powers of the hash key H are times x, which makes
// the product of two reflected elements come out in place.
struct GcmKey {
  static constexpr size_t kRounds = 14;
  static constexpr size_t kPowers = 33;  // blocks hashed with one reduction: a stride, the lengths
  static constexpr size_t kSpare = 3;    // zeros: a vector at the lowest power reads past it
  alignas(64) GcmBlock round_keys[kRounds + 1];
  GcmBlock powers[kPowers + kSpare];  // H^33, …, H^1; H^32 and H^16 begin a cache line
  GcmBlock folded[kPowers + kSpare];  // their halves added up, in both halves: Karatsuba's factor
};

struct GcmPart {
  const Iv& iv;
  uint64_t first_block = 0;  // of the message's blocks; only its last part ends within one
  GcmHash so_far = {};       // the hash of what is in front of it
  const uint8_t* in = nullptr;
  uint8_t* out = nullptr;
  uint64_t bytes = 0;
  bool streamed = false;  // the output goes past the caches, if it begins at a line
  // Carried out on the way. Of open: whatever it is; of seal: it delivers what is sealed, not `in`.
  PiecewiseDelivery* beside = nullptr;
  bool asks_to_write = cpu_gains_by_asking_to_write();  // for lines of the output, in time
};

struct GcmWidth {
  void (*schedule)(GcmKey& key, std::span<const uint8_t, Key::kBytes> secret);
  GcmHash (*seal)(const GcmKey& key, const GcmPart& part);
  GcmHash (*open)(const GcmKey& key, const GcmPart& part);
  // A whole message: its tag. Nothing is in front of it but the additional data.
  Tag (*seal_whole)(const GcmKey& key, const GcmPart& part, Bytes additional);
  Tag (*open_whole)(const GcmKey& key, const GcmPart& part, Bytes additional);
  // Of a message in parts, by the hash of all of it.
  Tag (*tag)(const GcmKey& key, const Iv& iv, GcmHash hash, uint64_t additional_bytes,
             uint64_t bytes);
  GcmHash (*hash)(const GcmKey& key, GcmHash so_far, Bytes bytes);  // padded to whole blocks
  // `before`, then a part of so many blocks; powers: H^(2^k), each times x as in a GcmKey.
  GcmHash (*join)(const GcmHash* powers, GcmHash before, GcmHash part, uint64_t blocks);
  // To where its owner keeps it: returned, it would be left on the stack.
  void (*encrypt)(const GcmKey& key, const GcmBlock& in, GcmBlock& out);
  uint64_t streamed_bytes_min;  // parts this long are better sent past the caches
};

// Only where the CPU has their instructions (base/cpu.h).
extern const GcmWidth kAesNiWidth;
extern const GcmWidth kVaes256Width;
extern const GcmWidth kVaes512Width;

}  // namespace sealane
