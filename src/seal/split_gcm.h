// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// AES-256-GCM in parts. A message can be cut at multiples of 16 bytes; each part is sealed or
// opened alone, on any thread, in any order, and yields the hash of its ciphertext; joining the
// hashes in order gives the message's. So many cores work on one message, and a message may come in
// pieces. By our own loop (gcm_width.h), at the width native_width() found fastest.
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
#include "seal/gcm_width.h"
#include "seal/key.h"
#include "seal/secret_memory.h"

namespace sealane {

// A hash with its ciphertext, which anybody may have, gives the hash's key: it is wiped after use.
inline void wipe_hashes(std::span<GcmHash> hashes) {
  wipe({reinterpret_cast<uint8_t*>(hashes.data()), hashes.size_bytes()});
}

class SplitGcm {
 public:
  // nullptr if this build or CPU has no loop for it: libcrypto serves then, message by message.
  static std::unique_ptr<SplitGcm> make(std::span<const uint8_t, Key::kBytes> key);

  // At a width of the caller's choice, which this CPU has. For tests.
  SplitGcm(const GcmWidth& width, std::span<const uint8_t, Key::kBytes> key);
  SplitGcm(const SplitGcm&) = delete;
  SplitGcm& operator=(const SplitGcm&) = delete;

  // The part that begins with this block of the message. Only the last part may end within a block.
  GcmHash seal_part(const Iv& iv, uint64_t first_block, const uint8_t* in, uint8_t* out,
                    uint64_t bytes) const;
  GcmHash open_part(const Iv& iv, uint64_t first_block, const uint8_t* in, uint8_t* out,
                    uint64_t bytes) const;
  void keystream(const Iv& iv, uint64_t block, GcmBlock& to) const;

  // `before`, then a part of so many blocks. Hashes are passed by value, in registers: a reference
  // would need one in memory, and leave it there.
  GcmHash join(GcmHash before, GcmHash part, uint64_t blocks) const;
  GcmHash join(GcmHash before, const GcmBlock& block) const;
  Tag tag(const Iv& iv, GcmHash hash, uint64_t additional_bytes, uint64_t bytes) const;

 private:
  static constexpr size_t kPowers = 32;  // H^(2^k), times x: enough for GCM's longest message

  const GcmWidth& width_;
  Secret<GcmKey> key_;
  Secret<std::array<GcmHash, kPowers>> powers_;
};

}  // namespace sealane
