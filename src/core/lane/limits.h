// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What one AES-256-GCM key may do: specification numbers, not tuning.
//
// - Messages: the IV's message counter has 32 bits (NVIDIA's channels and ours alike), so a key
//   ends before the counter would repeat.
// - Blocks: the advantage of an attacker who tells ciphertext from noise grows with the square of
//   the 16-byte blocks sealed. 2^34.5 blocks keep it near 2^-60, the bound TLS 1.3 is analysed
//   with (RFC 8446, 5.5). It is about 389 GB, where NVIDIA's driver rotates too.
// - Message length is bounded by GCM itself (seal/aead.h).
#pragma once

#include <cstdint>

namespace sealane {

struct KeyLimits {
  uint64_t messages = uint64_t{1} << 32;
  uint64_t blocks = 24'296'004'000;  // 2^34.5
};

constexpr uint64_t kBlockBytes = 16;

// Blocks a message takes: data and additional data rounded up, one for the lengths.
constexpr uint64_t blocks_of(uint64_t data_bytes, uint64_t additional_bytes) {
  return (data_bytes + kBlockBytes - 1) / kBlockBytes +
         (additional_bytes + kBlockBytes - 1) / kBlockBytes + 1;
}

}  // namespace sealane
