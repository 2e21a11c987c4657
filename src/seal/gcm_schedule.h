// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// For gcm_loop.h: AES round keys, and the powers of the hash key.
#pragma once

#include <cstring>
#include <span>
#include <utility>

#include "seal/gcm_hash.h"
#include "seal/gcm_keystream.h"

namespace sealane {
namespace {

template <typename V>
struct GcmSchedule {
  using Type = typename V::Type;
  static constexpr size_t kRounds = GcmKey::kRounds;

  SEALANE_WIDE_INLINE static __m128i times_x(__m128i value) {
    const GcmHash bits = hash_of(value);
    const uint64_t carry = uint64_t{0} - (bits.high >> 63);  // no branch on a secret
    return element({(bits.high << 1 | bits.low >> 63) ^ (carry & 0xc200000000000000),
                    bits.low << 1 ^ (carry & 1)});
  }

  // w, then what each further word of it adds to the next.
  SEALANE_WIDE_INLINE static __m128i expanded(__m128i before, __m128i word) {
    before = _mm_xor_si128(before, _mm_slli_si128(before, 4));
    before = _mm_xor_si128(before, _mm_slli_si128(before, 8));
    return _mm_xor_si128(before, word);
  }
  template <size_t... i>
  SEALANE_WIDE_INLINE static void expand(GcmBlock* keys, std::index_sequence<i...>) {
    (store_block(
         &keys[i + 2],
         expanded(
             block_at(&keys[i]),
             i % 2 == 0
                 ? _mm_shuffle_epi32(_mm_aeskeygenassist_si128(block_at(&keys[i + 1]), 1 << i / 2),
                                     0xff)
                 : _mm_shuffle_epi32(_mm_aeskeygenassist_si128(block_at(&keys[i + 1]), 0), 0xaa))),
     ...);
  }

  SEALANE_WIDE_INLINE static void put_power(GcmKey& key, size_t power, __m128i value) {
    store_block(&key.powers[GcmKey::kPowers - power], value);
    store_block(&key.folded[GcmKey::kPowers - power],
                _mm_xor_si128(value, _mm_shuffle_epi32(value, 0x4e)));
  }

  SEALANE_WIDE static void schedule(GcmKey& key, std::span<const uint8_t, Key::kBytes> secret) {
    // Not by memcpy: libc's may leave the key in registers that this width does not know.
    store_block(&key.round_keys[0], block_at(secret.data()));
    store_block(&key.round_keys[1], block_at(secret.data() + sizeof(GcmBlock)));
    expand(key.round_keys, std::make_index_sequence<kRounds - 1>());
    std::memset(key.powers, 0, sizeof key.powers);
    std::memset(key.folded, 0, sizeof key.folded);
    const __m128i subkey = Keystream<V>::encrypt(key, _mm_setzero_si128());
    const __m128i first = times_x(_mm_shuffle_epi8(subkey, reversal()));
    put_power(key, 1, first);
    Type power = V::first_lane(first);
    for (size_t i = 2; i <= GcmKey::kPowers; ++i) {
      power = Ghash<V>::hash_one(key, power, V::zero());
      put_power(key, i, V::lane(power));
    }
    V::clear_registers();
  }
};

}  // namespace
}  // namespace sealane
