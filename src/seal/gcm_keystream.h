// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// For gcm_loop.h: AES in counter mode, a stride at a time, with room between its instructions.
//
// Two rounds saved. Blocks of a message differ in the last byte of the counter, and in the bytes
// before it every 256 blocks. One byte reaches one column in the first round and is, in the second,
// a term of its own: after two rounds state(rest, byte) = state(0, byte) + state(0, 0) +
// state(rest, 0). So what the first 256 blocks were after two rounds is kept, and with one block
// that changes every 256th it replaces those rounds from then on. It is read in the order of the
// counter, which is no secret.
#pragma once

#include <utility>

#include "seal/gcm_blocks.h"

namespace sealane {
namespace {

template <typename V>
struct Keystream {
  using Type = typename V::Type;
  using Shape = GcmShape<V>;
  static constexpr size_t kVectors = Shape::kVectors;
  static constexpr size_t kLanes = Shape::kLanes;
  static constexpr size_t kBlocks = Shape::kBlocks;
  static constexpr size_t kRounds = GcmKey::kRounds;
  static constexpr size_t kCachedRounds = Shape::kCachedRounds;
  static constexpr size_t kTableBlocks = kGcmTableBlocks;
  static_assert(kTableBlocks % kBlocks == 0);  // strides begin at the same entries again
  using Each = std::make_index_sequence<kVectors>;

  struct Stream {
    Type state[kVectors];
  };

  SEALANE_WIDE_INLINE static __m128i encrypt_some(const GcmKey& key, __m128i block, size_t rounds) {
    block = _mm_xor_si128(block, block_at(&key.round_keys[0]));
#pragma GCC unroll 16
    for (size_t i = 1; i <= rounds; ++i)
      block = _mm_aesenc_si128(block, block_at(&key.round_keys[i]));
    return block;
  }
  SEALANE_WIDE_INLINE static __m128i encrypt(const GcmKey& key, __m128i block) {
    return _mm_aesenclast_si128(encrypt_some(key, block, kRounds - 1),
                                block_at(&key.round_keys[kRounds]));
  }
  SEALANE_WIDE static void encrypt_block(const GcmKey& key, const GcmBlock& in, GcmBlock& out) {
    store_block(&out, encrypt(key, block_at(&in)));
    V::clear_registers();
  }

  // Where the counter is, and what is kept of blocks that were. A table's third entry begins a
  // line: that is where messages begin.
  struct Counter {
    __m128i iv;  // reversed, counter zero
    uint32_t begin;
    uint32_t next;
    Type blocks;         // those of `next`
    uint8_t* table;      // by the last byte: states after two rounds, less `rest`
    bool keeps;          // them
    bool ready = false;  // to be read
    __m128i rest = {};   // what the bytes above the last one add, against those of `begin`

    SEALANE_WIDE_INLINE Counter(const Iv& iv_, uint64_t first_block, uint8_t* table_, bool keeps_)
        : iv(_mm_shuffle_epi8(counter_block(iv_, 0), reversal())),
          begin(static_cast<uint32_t>(first_block + 2)),
          next(begin),
          blocks(blocks_of(next)),
          table(table_ + 2 * kGcmBlockBytes),
          keeps(keeps_) {}
    SEALANE_WIDE_INLINE Type blocks_of(uint32_t count) const {
      const Type numbers = V::add_words(
          V::broadcast(_mm_insert_epi32(iv, static_cast<int>(count), 0)), V::lane_numbers());
      return V::shuffle(numbers, V::broadcast(reversal()));
    }
    // The next vector's, where the last byte does not run over.
    SEALANE_WIDE_INLINE Type take() {
      const Type taken = blocks;
      blocks = V::add_words(blocks, V::broadcast(_mm_set_epi32(kLanes << 24, 0, 0, 0)));
      return taken;
    }
  };

  SEALANE_WIDE_INLINE static Type two_rounds(const GcmKey& key, Type blocks) {
    static_assert(kCachedRounds == 2);
    Type state = V::add(blocks, V::broadcast(block_at(&key.round_keys[0])));
    state = V::round(state, V::broadcast(block_at(&key.round_keys[1])));
    return V::round(state, V::broadcast(block_at(&key.round_keys[2])));
  }

  // Of the block that ends with a zero, 256 or less before `count`.
  SEALANE_WIDE_INLINE static __m128i above(const GcmKey& key, const Counter& counter,
                                           uint32_t count) {
    const int first = static_cast<int>(count & ~uint32_t{kTableBlocks - 1});
    return encrypt_some(key, _mm_shuffle_epi8(_mm_insert_epi32(counter.iv, first, 0), reversal()),
                        kCachedRounds);
  }

  // A stride in which the last byte runs over, or with whose end: each vector by itself, once in
  // 256 blocks. What they leave in the table is for this stride only.
  SEALANE_WIDE_INLINE static void run_over(const GcmKey& key, Counter& counter) {
    const uint32_t after = counter.next + kBlocks;
    uint8_t* const to = counter.table + counter.next % kTableBlocks * kGcmBlockBytes;
    if (counter.keeps) {
      counter.rest = _mm_xor_si128(above(key, counter, after), above(key, counter, counter.begin));
      counter.ready = after - counter.begin >= kTableBlocks;
    }
    for (uint32_t i = 0; i < kBlocks; i += kLanes) {
      const Type state = two_rounds(key, counter.blocks_of(counter.next + i));
      V::store(to + i * kGcmBlockBytes, V::add(state, V::broadcast(counter.rest)));
    }
    counter.blocks = counter.blocks_of(after);
  }

  template <size_t... i>
  SEALANE_WIDE_INLINE static void start(const GcmKey& key, Counter& counter, Stream& stream,
                                        std::index_sequence<i...>) {
    const uint32_t at = counter.next % kTableBlocks;
    uint8_t* const entry = counter.table + at * kGcmBlockBytes;
    const bool over = at + kBlocks >= kTableBlocks;
    if (over) {
      Counter moved = counter;  // a copy: the counter itself stays in registers
      run_over(key, moved);
      counter = moved;
    }
    if (over || counter.ready) {
      const Type rest = V::broadcast(counter.rest);
      ((stream.state[i] = V::add(V::load(entry + i * V::kBytes), rest)), ...);
      if (!counter.keeps) {  // no table to be wiped: who finds these has the key
        (V::store(entry + i * V::kBytes, V::zero()), ...);
        asm volatile("" : : "r"(entry) : "memory");
      }
    } else {
      ((stream.state[i] = two_rounds(key, counter.take())), ...);
      if (counter.keeps) {
        const Type rest = V::broadcast(counter.rest);
        (V::store(entry + i * V::kBytes, V::add(stream.state[i], rest)), ...);
      }
    }
    counter.next += kBlocks;
  }

  template <size_t round, typename Between, size_t... i>
  SEALANE_WIDE_INLINE static void one_round(const GcmKey& key, Stream& stream, Between& between,
                                            std::index_sequence<i...>) {
    const Type round_key = V::broadcast(block_at(&key.round_keys[round]));
    ((stream.state[i] = round == kRounds ? V::last_round(stream.state[i], round_key)
                                         : V::round(stream.state[i], round_key),
      between.template in_slot<(round - kCachedRounds - 1) * kVectors + i>()),
     ...);
  }
  template <typename Between, size_t... round>
  SEALANE_WIDE_INLINE static void rounds(const GcmKey& key, Stream& stream, Between& between,
                                         std::index_sequence<round...>) {
    (one_round<round + kCachedRounds + 1>(key, stream, between, Each()), ...);
  }
  template <typename Between>
  SEALANE_WIDE_INLINE static void make_stream(const GcmKey& key, Counter& counter, Stream& stream,
                                              Between& between) {
    start(key, counter, stream, Each());
    rounds(key, stream, between, std::make_index_sequence<kRounds - kCachedRounds>());
  }
  struct Nothing {
    template <size_t slot>
    SEALANE_WIDE_INLINE void in_slot() {}
  };
  template <typename One, typename Other>
  struct Both {
    One& one;
    Other& other;
    template <size_t slot>
    SEALANE_WIDE_INLINE void in_slot() {
      one.template in_slot<slot>();
      other.template in_slot<slot>();
    }
  };
};

}  // namespace
}  // namespace sealane
