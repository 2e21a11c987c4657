// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// AES-256-GCM over a vector type V of some 16-byte lanes. A file that is compiled for one width
// defines SEALANE_GCM_TARGET, its instructions, and V, and includes this; all is local to that
// file.
//
// A stride is V::kVectors vectors. Its work, in the order it is written down:
//
//   1. start    counter blocks, two rounds on: from a table where the message is long (below)
//   2. rounds   3 to 14, and between single AES instructions a step of hashing: of opened bytes
//   this
//               stride's, of sealed ones those of the stride before
//   3. finish   plaintext or ciphertext is stored; reduction of the hash has ended by then
//
// AES, carry-less products, loads and stores have ports of their own, so what bounds the loop is
// how evenly they are mixed (docs/engines-x86.md). Ciphertext is read or written once: what is
// needed of it later lies in `held`, private memory.
//
// Two rounds saved. Blocks of a message differ in the last byte of the counter, and in the bytes
// before it every 256 blocks. One byte reaches one column in the first round and is, in the second,
// a term of its own: after two rounds state(rest, byte) = state(0, byte) + state(0, 0) +
// state(rest, 0). So what the first 256 blocks were after two rounds is kept, and with one block
// that changes every 256th it replaces those rounds from then on. It is read in the order of the
// counter, which is no secret.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "seal/delivery.h"
#include "seal/gcm_width.h"

#define SEALANE_WIDE [[gnu::target(SEALANE_GCM_TARGET)]]
#define SEALANE_WIDE_INLINE [[gnu::target(SEALANE_GCM_TARGET), gnu::always_inline]] inline

namespace sealane {
namespace {

SEALANE_WIDE_INLINE __m128i block_at(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}
SEALANE_WIDE_INLINE void store_block(void* to, __m128i block) {
  _mm_storeu_si128(static_cast<__m128i*>(to), block);
}
// Up to a block of them, then zeros. Every byte of it comes from one read, and none is read that is
// not there.
SEALANE_WIDE_INLINE __m128i block_of_few(const uint8_t* from, size_t bytes) {
  if (bytes >= sizeof(__m128i)) return block_at(from);
  uint64_t low = 0;
  uint64_t high = 0;
  if (bytes >= 8) {
    std::memcpy(&low, from, 8);
    if (bytes > 8) {
      std::memcpy(&high, from + bytes - 8, 8);
      high >>= 8 * (16 - bytes);
    }
  } else if (bytes >= 4) {
    uint32_t first = 0;
    uint32_t last = 0;
    std::memcpy(&first, from, 4);
    std::memcpy(&last, from + bytes - 4, 4);
    low = uint64_t{last} << 8 * (bytes - 4) | first;
  } else if (bytes > 0) {
    low = from[0] | uint64_t{from[bytes / 2]} << 8 * (bytes / 2) |
          uint64_t{from[bytes - 1]} << 8 * (bytes - 1);
  }
  return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}
SEALANE_WIDE_INLINE __m128i reversal() {
  return _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
// x^128 + x^127 + x^126 + x^121 + 1
SEALANE_WIDE_INLINE __m128i polynomial() {
  return _mm_set_epi64x(static_cast<long long>(0xc200000000000000), 1);
}
SEALANE_WIDE_INLINE __m128i element(const GcmHash& hash) {
  return _mm_set_epi64x(static_cast<long long>(hash.high), static_cast<long long>(hash.low));
}
SEALANE_WIDE_INLINE GcmHash hash_of(__m128i element) {
  return {static_cast<uint64_t>(_mm_extract_epi64(element, 1)),
          static_cast<uint64_t>(_mm_extract_epi64(element, 0))};
}

// IV and counter, put together in registers: stored in pieces they could not be loaded at once.
SEALANE_WIDE_INLINE __m128i counter_block(const Iv& iv, uint32_t counter) {
  uint64_t first = 0;
  uint32_t last = 0;
  std::memcpy(&first, iv.data(), sizeof first);
  std::memcpy(&last, iv.data() + sizeof first, sizeof last);
  return _mm_set_epi64x(static_cast<long long>(uint64_t{__builtin_bswap32(counter)} << 32 | last),
                        static_cast<long long>(first));
}

template <typename V>
struct Gcm {
  using Type = typename V::Type;
  static constexpr size_t kVectors = V::kVectors;
  static constexpr size_t kLanes = V::kBytes / kGcmBlockBytes;
  static constexpr size_t kBlocks = kVectors * kLanes;
  static constexpr size_t kStride = kVectors * V::kBytes;
  static constexpr size_t kRounds = GcmKey::kRounds;
  static constexpr size_t kCachedRounds = 2;
  static constexpr size_t kTableBlocks = 256;
  static constexpr size_t kLineBytes = 64;
  static constexpr size_t kAhead = 1024;  // the CPU's own prefetching ends with a page
  static_assert(kBlocks < GcmKey::kPowers && kLanes - 1 <= GcmKey::kSpare);
  static_assert(kTableBlocks % kBlocks == 0);  // strides begin at the same entries again
  static_assert(kStride <= PiecewiseDelivery::kPieceBytesMax);
  using Each = std::make_index_sequence<kVectors>;

  // ---- The hash ----

  // A sum of products. `middle` is of the halves' sums (Karatsuba) or of both mixed pairs.
  struct Products {
    Type low, middle, high;
  };
  struct Sums {
    Products sum;
    Products waiting;  // of V::kAddsThree: products that go in together with the next one
  };

  // Steps of a stride's n-th vector.
  template <size_t step, size_t n>
  SEALANE_WIDE_INLINE static void add_product(Sums& to, Type& blocks, const GcmBlock* power,
                                              const GcmBlock* folded) {
    if constexpr (step == 1)
      accumulate<n>(to.sum.low, to.waiting.low, V::template multiply<0x00>(blocks, V::load(power)));
    if constexpr (step == 2)
      accumulate<n>(to.sum.high, to.waiting.high,
                    V::template multiply<0x11>(blocks, V::load(power)));
    if constexpr (step == 3) blocks = V::add(blocks, V::swap(blocks));
    if constexpr (step == 4)
      accumulate<n>(to.sum.middle, to.waiting.middle,
                    V::template multiply<0x00>(blocks, V::load(folded)));
  }
  // An order the compiler keeps: it would rather collect all products first, and has no room.
  template <size_t n>
  SEALANE_WIDE_INLINE static void accumulate(Type& sum, Type& waiting, Type product) {
    if constexpr (n == 0) {
      sum = product;
    } else if constexpr (V::kAddsThree && n % 2 == 1 && n + 1 < kVectors) {
      waiting = product;
      V::keep(waiting);
      return;
    } else if constexpr (V::kAddsThree && n % 2 == 0) {
      sum = V::add(sum, waiting, product);
    } else {
      sum = V::add(sum, product);
    }
    V::keep(sum);
  }

  static constexpr size_t kVectorSteps = 5;     // the first brings the blocks
  static constexpr size_t kReductionSteps = 6;  // the last leaves the hash in the first lane
  template <size_t step>
  SEALANE_WIDE_INLINE static void reduce_step(Products& sum, Type& hash) {
    if constexpr (step == 0) sum.middle = V::add(sum.middle, sum.low, sum.high);
    if constexpr (step == 1) sum.low = V::add(sum.low, V::shift_up(sum.middle));
    if constexpr (step == 2) sum.high = V::add(sum.high, V::shift_down(sum.middle));
    if constexpr (step == 3 || step == 4) {
      sum.low =
          V::add(V::swap(sum.low), V::template multiply<0x10>(sum.low, V::broadcast(polynomial())));
    }
    if constexpr (step == 5) hash = V::sum_of_lanes(V::add(sum.high, sum.low));
  }
  template <size_t... step>
  SEALANE_WIDE_INLINE static void reduce(Products& sum, Type& hash, std::index_sequence<step...>) {
    (reduce_step<step>(sum, hash), ...);
  }

  // The hash of one stride in steps, to be put between others. The vector that the hash so far goes
  // in with is the last: it may still be on its way.
  template <bool opening>
  struct Hashing {
    const GcmKey& key;
    const uint8_t* in;  // of opening: exposed
    uint8_t* held;
    Type hash;
    Sums sums;
    Type blocks;

    static constexpr size_t kSteps = kVectors * kVectorSteps + kReductionSteps;
    static constexpr size_t kSlots = kVectors * (kRounds - kCachedRounds);

    template <size_t slot>
    SEALANE_WIDE_INLINE void in_slot() {
      constexpr size_t n = (slot * kSteps + kSlots - 1) / kSlots;
      if constexpr (n < kSteps && n * kSlots / kSteps == slot) step<n>();
    }
    template <size_t n>
    SEALANE_WIDE_INLINE void step() {
      if constexpr (n >= kVectors * kVectorSteps) {
        reduce_step<n - kVectors * kVectorSteps>(sums.sum, hash);
      } else {
        constexpr size_t i = (n / kVectorSteps + 1) % kVectors;
        if constexpr (n % kVectorSteps == 0) {
          bring<i>();
        } else {
          constexpr size_t power = GcmKey::kPowers - kBlocks + i * kLanes;
          add_product<n % kVectorSteps, n / kVectorSteps>(sums, blocks, key.powers + power,
                                                          key.folded + power);
        }
      }
    }
    template <size_t i>
    SEALANE_WIDE_INLINE void bring() {
      if constexpr (opening) {
        blocks = V::load(in + i * V::kBytes);
        V::keep(blocks);  // from here on in a register: it is not fetched again
        V::store(held + i * V::kBytes, blocks);
      } else {
        blocks = V::load(held + i * V::kBytes);
      }
      blocks = V::shuffle(blocks, V::broadcast(reversal()));
      if constexpr (i == 0) blocks = V::add(blocks, hash);
    }
  };

  // Up to kPowers blocks of private memory, with one reduction; the last one padded with zeros if
  // there are `few` bytes. Else read in whole vectors: what is behind the blocks does not count.
  template <bool few = false>
  SEALANE_WIDE_INLINE static Type hash_blocks(const GcmKey& key, Type hash, const uint8_t* from,
                                              size_t blocks, size_t bytes = 0) {
    const GcmBlock* power = key.powers + (GcmKey::kPowers - blocks);
    const GcmBlock* folded = key.folded + (GcmKey::kPowers - blocks);
    constexpr size_t kAlone = kVectors - 1;  // a vector that waits for no other
    Sums sums = {{V::zero(), V::zero(), V::zero()}, {}};
    for (size_t at = 0; at < blocks; at += kLanes) {
      const size_t here = at * kGcmBlockBytes;
      Type vector = few && bytes - here < V::kBytes ? V::load_few(from + here, bytes - here)
                                                    : V::load(from + here);
      vector = V::shuffle(vector, V::broadcast(reversal()));
      if (at == 0) vector = V::add(vector, hash);
      add_product<1, kAlone>(sums, vector, power + at, folded + at);
      add_product<2, kAlone>(sums, vector, power + at, folded + at);
      add_product<3, kAlone>(sums, vector, power + at, folded + at);
      add_product<4, kAlone>(sums, vector, power + at, folded + at);
    }
    reduce(sums.sum, hash, std::make_index_sequence<kReductionSteps>());
    return hash;
  }

  SEALANE_WIDE_INLINE static __m128i hash_padded(const GcmKey& key, __m128i so_far, Bytes bytes) {
    Type hash = V::first_lane(so_far);
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), GcmKey::kPowers * kGcmBlockBytes);
      const size_t blocks = (count + kGcmBlockBytes - 1) / kGcmBlockBytes;
      hash = hash_blocks<true>(key, hash, bytes.data(), blocks, count);
      bytes = bytes.subspan(count);
    }
    return V::lane(hash);
  }
  SEALANE_WIDE static GcmHash hash(const GcmKey& key, GcmHash so_far, Bytes bytes) {
    return hash_of(hash_padded(key, element(so_far), bytes));
  }

  // ---- AES ----

  struct Stream {
    Type state[kVectors];
  };

  SEALANE_WIDE_INLINE static __m128i encrypt(const GcmKey& key, __m128i block, size_t rounds) {
    block = _mm_xor_si128(block, block_at(&key.round_keys[0]));
#pragma GCC unroll 16
    for (size_t i = 1; i <= rounds; ++i)
      block = _mm_aesenc_si128(block, block_at(&key.round_keys[i]));
    return block;
  }
  SEALANE_WIDE static GcmBlock encrypt_block(const GcmKey& key, const GcmBlock& in) {
    const __m128i block = encrypt(key, block_at(&in), kRounds - 1);
    GcmBlock out;
    store_block(&out, _mm_aesenclast_si128(block, block_at(&key.round_keys[kRounds])));
    return out;
  }

  // Where the counter is, and what is kept of blocks that were. A table's third entry begins a
  // line: that is where messages begin.
  static constexpr size_t kTableBytes = (2 + kTableBlocks + kBlocks) * kGcmBlockBytes;
  struct Counter {
    __m128i iv;  // reversed, counter zero
    uint32_t begin;
    uint32_t next;
    Type blocks;         // those of `next`
    uint8_t* table;      // by the last byte: states after two rounds, less `rest`
    bool keeps;          // them
    bool ready = false;  // to be read
    __m128i rest = {};   // what the bytes above the last one add, against those of `begin`

    SEALANE_WIDE_INLINE Counter(const GcmPart& part, uint8_t* table_)
        : iv(_mm_shuffle_epi8(counter_block(part.iv, 0), reversal())),
          begin(static_cast<uint32_t>(part.first_block + 2)),
          next(begin),
          blocks(blocks_of(next)),
          table(table_ + 2 * kGcmBlockBytes),
          keeps(part.bytes >= V::kTableBytesMin) {}
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
    return encrypt(key, _mm_shuffle_epi8(_mm_insert_epi32(counter.iv, first, 0), reversal()),
                   kCachedRounds);
  }

  // A stride in which the last byte runs over, or with whose end: each vector by itself, once in
  // 256 blocks. What they leave in the table is for this stride only.
  SEALANE_WIDE static void run_over(const GcmKey& key, Counter& counter) {
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

  // ---- What is delivered in the loop itself: copies, and sums of float32 ----

  struct NoWork {
    static constexpr bool kDelivers = false;
    SEALANE_WIDE_INLINE NoWork(const GcmPart&, uint8_t*) {}
  };

  // A line at a time, so that what is streamed leaves the core as whole lines.
  template <bool sums, bool streamed>
  struct Work {
    static constexpr bool kDelivers = true;
    static constexpr size_t kLines = kStride / kLineBytes;
    static constexpr size_t kSlotsOfLine = kVectors * (kRounds - kCachedRounds) / kLines;
    const uint8_t* first;
    const uint8_t* second;
    uint8_t* to;
    uint8_t* plain;  // of sealing: where the loop finds it; else nullptr
    size_t bytes;    // whole strides of it

    SEALANE_WIDE_INLINE Work(const GcmPart& part, uint8_t* plain_)
        : first(part.beside->left().first.data()),
          second(part.beside->left().second.data()),
          to(part.beside->left().to.data()),
          plain(plain_),
          bytes(std::min(part.beside->left().to.size(), part.bytes) / kStride * kStride) {}

    template <size_t slot>
    SEALANE_WIDE_INLINE void in_slot() {
      if constexpr (slot % kSlotsOfLine == kSlotsOfLine / 2) {
        line<slot / kSlotsOfLine * kLineBytes>(std::make_index_sequence<kLineBytes / V::kBytes>());
      }
    }
    template <size_t at, size_t... i>
    SEALANE_WIDE_INLINE void line(std::index_sequence<i...>) {
      _mm_prefetch(first + at + 2 * kAhead, _MM_HINT_T0);
      if constexpr (sums) _mm_prefetch(second + at + 2 * kAhead, _MM_HINT_T0);
      const Type values[] = {value(at + i * V::kBytes)...};
      (V::template put<streamed>(to + at + i * V::kBytes, values[i]), ...);
      if (plain != nullptr) (V::store(plain + at + i * V::kBytes, values[i]), ...);
    }
    SEALANE_WIDE_INLINE Type value(size_t at) const {
      if constexpr (!sums) return V::load(first + at);
      return V::add_floats(V::load(first + at), V::load(second + at));
    }
    SEALANE_WIDE_INLINE void advance() {
      first += kStride;
      if constexpr (sums) second += kStride;
      to += kStride;
    }
  };

  // ---- A stride's bytes ----

  template <size_t... i>
  SEALANE_WIDE_INLINE static void ask_for(const uint8_t* from, std::index_sequence<i...>) {
    (_mm_prefetch(from + kAhead + i * 64, _MM_HINT_T0), ...);
  }

  template <bool streamed, size_t... i>
  SEALANE_WIDE_INLINE static void put_opened(const Stream& stream, const uint8_t* held,
                                             uint8_t* out, std::index_sequence<i...>) {
    (V::template put<streamed>(out + i * V::kBytes,
                               V::add(stream.state[i], V::load(held + i * V::kBytes))),
     ...);
  }

  // What is hashed later is another value to the compiler than what is stored where others may
  // write: it cannot be fetched from there.
  template <bool streamed, size_t... i>
  SEALANE_WIDE_INLINE static void put_sealed(Stream& stream, const uint8_t* plain, uint8_t* held,
                                             uint8_t* out, std::index_sequence<i...>) {
    ((stream.state[i] = V::add(stream.state[i], V::load(plain + i * V::kBytes)),
      V::store(held + i * V::kBytes, stream.state[i]), V::keep(stream.state[i]),
      V::template put<streamed>(out + i * V::kBytes, stream.state[i])),
     ...);
  }

  // The last bytes, less than a stride: a whole stride's keystream takes no longer than a block's.
  template <bool opening>
  SEALANE_WIDE static Type last_bytes(const GcmKey& key, Counter& counter, Type hash,
                                      const GcmPart& part, const uint8_t* in, size_t at) {
    const size_t bytes = part.bytes - at;
    alignas(64) uint8_t held[kStride + V::kBytes];
    alignas(64) uint8_t other[kStride + V::kBytes];
    Stream stream;
    Nothing nothing;
    make_stream(key, counter, stream, nothing);
    copy_from_shared({in, bytes}, {held, bytes});
    std::memset(held + bytes, 0, sizeof held - bytes);
    put_opened<false>(stream, held, other, Each());
    std::memcpy(part.out + at, other, bytes);
    std::memset(other + bytes, 0, sizeof other - bytes);
    uint8_t* const sealed = opening ? held : other;
    const size_t blocks = (bytes + kGcmBlockBytes - 1) / kGcmBlockBytes;
    store_block(sealed + blocks * kGcmBlockBytes, lengths(part));
    hash = hash_blocks(key, hash, sealed, blocks + part.ends);
    wipe(opening ? other : held);
    return hash;
  }
  SEALANE_WIDE_INLINE static __m128i lengths(const GcmPart& part) {
    return _mm_shuffle_epi8(element(part.lengths), reversal());
  }

  // ---- A part ----

  struct Area {
    alignas(64) uint8_t held[kStride + V::kBytes];  // sealed; behind a stride, the lengths
    alignas(64) uint8_t plain[kStride];
    alignas(64) uint8_t table[kTableBytes];
  };

  // One stride's keystream, with what is done between.
  template <typename Between, typename Delivering>
  SEALANE_WIDE_INLINE static void make_stream(const GcmKey& key, Counter& counter, Stream& stream,
                                              Between& between, Delivering& work) {
    Both<Between, Delivering> both{between, work};
    make_stream(key, counter, stream, both);
    work.advance();
  }

  template <typename Delivering, bool streamed>
  SEALANE_WIDE static GcmHash open_part(const GcmKey& key, const GcmPart& part) {
    Area area;
    Counter counter(part, area.table);
    V::store(area.held + kStride, V::first_lane(lengths(part)));
    // Narrow vectors take all registers there are when opening: the counter stays in memory.
    if constexpr (kLanes == 1) asm("" : : "r"(&counter));
    Hashing<true> hashing{key, part.in, area.held, V::first_lane(element(part.so_far)), {}, {}};
    Stream stream;
    Delivering work(part, nullptr);
    size_t at = 0;
    if constexpr (Delivering::kDelivers) {
      for (; at < work.bytes; at += kStride) {
        ask_for(part.in + at, std::make_index_sequence<kStride / kLineBytes>());
        hashing.in = part.in + at;
        make_stream(key, counter, stream, hashing, work);
        put_opened<streamed>(stream, area.held, part.out + at, Each());
      }
      part.beside->skip(at);
    }
    const size_t whole = part.bytes / kStride * kStride;
    for (; at < whole; at += kStride) {
      ask_for(part.in + at, std::make_index_sequence<kStride / kLineBytes>());
      hashing.in = part.in + at;
      make_stream(key, counter, stream, hashing);
      put_opened<streamed>(stream, area.held, part.out + at, Each());
      if (part.beside != nullptr) part.beside->carry_out(at, kStride);
    }
    Type hash = hashing.hash;
    Counter last = counter;
    if (whole != part.bytes) {
      hash = last_bytes<true>(key, last, hash, part, part.in + whole, whole);
    } else if (part.ends) {
      hash = hash_blocks(key, hash, area.held + kStride, 1);
    }
    return finish(part, area, hash);
  }

  template <typename Delivering, bool streamed>
  SEALANE_WIDE static GcmHash seal_part(const GcmKey& key, const GcmPart& part) {
    Area area;
    Counter counter(part, area.table);
    V::store(area.held + kStride, V::first_lane(lengths(part)));
    Hashing<false> hashing{key, nullptr, area.held, V::first_lane(element(part.so_far)), {}, {}};
    Nothing nothing;
    Stream stream;
    Delivering work(part, area.plain);
    const size_t whole = part.bytes / kStride * kStride;
    for (size_t at = 0; at < whole; at += kStride) {
      const uint8_t* plain = area.plain;
      if constexpr (Delivering::kDelivers) {
        at == 0 ? make_stream(key, counter, stream, nothing, work)
                : make_stream(key, counter, stream, hashing, work);
      } else {
        plain = plaintext(part, at, kStride);
        at == 0 ? make_stream(key, counter, stream, nothing)
                : make_stream(key, counter, stream, hashing);
      }
      put_sealed<streamed>(stream, plain, area.held, part.out + at, Each());
    }
    if constexpr (Delivering::kDelivers) part.beside->skip(whole);
    Type hash = hashing.hash;
    Counter last = counter;
    const bool ends = part.ends && whole == part.bytes;
    if (whole != 0) {
      hash = hash_blocks(key, hash, area.held, kBlocks + ends);
    } else if (ends) {
      hash = hash_blocks(key, hash, area.held + kStride, 1);
    }
    if (whole != part.bytes) {
      const uint8_t* const in = plaintext(part, whole, part.bytes - whole);
      hash = last_bytes<false>(key, last, hash, part, in, whole);
    }
    return finish(part, area, hash);
  }

  SEALANE_WIDE_INLINE static const uint8_t* plaintext(const GcmPart& part, size_t at,
                                                      size_t bytes) {
    if (part.beside != nullptr) return part.beside->carry_out(at, bytes);
    ask_for(part.in + at, std::make_index_sequence<kStride / 64>());
    return part.in + at;
  }

  SEALANE_WIDE_INLINE static GcmHash finish(const GcmPart& part, Area& area, Type hash) {
    if (part.streamed) _mm_sfence();  // such stores are ordered with nothing else
    if (part.beside != nullptr) wipe(area.plain);
    if (part.bytes >= V::kTableBytesMin) wipe(area.table);
    return hash_of(V::lane(hash));
  }

  // ---- Which loop ----

  struct Sealing {
    template <typename Delivering, bool streamed>
    static constexpr auto kLoop = seal_part<Delivering, streamed>;
  };
  struct Opening {
    template <typename Delivering, bool streamed>
    static constexpr auto kLoop = open_part<Delivering, streamed>;
  };

  template <typename Direction>
  static GcmHash crypt(const GcmKey& key, const GcmPart& part) {
    // NOLINTBEGIN(misc-redundant-expression): two loops of one template are not the same
    const Delivery* const delivery = part.beside != nullptr ? &part.beside->left() : nullptr;
    const bool copies = delivery != nullptr && !delivery->combines() &&
                        delivery->first.data() != delivery->to.data();
    const bool sums = delivery != nullptr && delivery->combines() &&
                      delivery->type == ElementType::float32 && delivery->op == ReduceOperator::sum;
    if (copies || sums) {
      const auto loop =
          sums ? (delivery->streamed ? Direction::template kLoop<Work<true, true>, false>
                                     : Direction::template kLoop<Work<true, false>, false>)
               : (delivery->streamed ? Direction::template kLoop<Work<false, true>, false>
                                     : Direction::template kLoop<Work<false, false>, false>);
      return loop(key, part);
    }
    const bool streamed = part.streamed && reinterpret_cast<uintptr_t>(part.out) % kLineBytes == 0;
    return streamed ? Direction::template kLoop<NoWork, true>(key, part)
                    : Direction::template kLoop<NoWork, false>(key, part);
    // NOLINTEND(misc-redundant-expression)
  }
  static GcmHash seal(const GcmKey& key, const GcmPart& part) { return crypt<Sealing>(key, part); }
  static GcmHash open(const GcmKey& key, const GcmPart& part) { return crypt<Opening>(key, part); }

  // A whole message. The tag's mask comes first: it needs nothing of the rest.
  template <typename Direction>
  SEALANE_WIDE static Tag whole(const GcmKey& key, GcmPart& part, Bytes additional) {
    const __m128i mask = _mm_aesenclast_si128(encrypt(key, counter_block(part.iv, 1), kRounds - 1),
                                              block_at(&key.round_keys[kRounds]));
    // At once, as it will be read: stored in halves it would have to be waited for.
    const __m128i begun = hash_padded(key, _mm_setzero_si128(), additional);
    store_block(&part.so_far, _mm_shuffle_epi32(begun, 0x4e));
    part.ends = true;
    part.lengths = {additional.size() * 8, part.bytes * 8};
    const GcmHash sum = crypt<Direction>(key, part);
    Tag tag;
    store_block(tag.data(), _mm_xor_si128(_mm_shuffle_epi8(element(sum), reversal()), mask));
    return tag;
  }

  // ---- The key ----

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
    std::memcpy(key.round_keys, secret.data(), secret.size());
    expand(key.round_keys, std::make_index_sequence<kRounds - 1>());
    std::memset(key.powers, 0, sizeof key.powers);
    std::memset(key.folded, 0, sizeof key.folded);
    const GcmBlock subkey = encrypt_block(key, {});
    const __m128i first = times_x(_mm_shuffle_epi8(block_at(&subkey), reversal()));
    put_power(key, 1, first);
    Type power = V::first_lane(first);
    alignas(64) uint8_t zeros[V::kBytes];
    V::store(zeros, V::zero());
    for (size_t i = 2; i <= GcmKey::kPowers; ++i) {
      power = hash_blocks(key, power, zeros, 1);
      put_power(key, i, V::lane(power));
    }
  }
};

// Long strides keep AES busy, short ones waste less of a message's end. They are one type where
// there are no registers for long ones.
constexpr uint64_t kLongBytesMin = 1_KiB;

template <typename Short, typename Long>
struct ByLength {
  static GcmHash seal(const GcmKey& key, const GcmPart& part) {
    return part.bytes < kLongBytesMin ? Gcm<Short>::seal(key, part) : Gcm<Long>::seal(key, part);
  }
  static GcmHash open(const GcmKey& key, const GcmPart& part) {
    return part.bytes < kLongBytesMin ? Gcm<Short>::open(key, part) : Gcm<Long>::open(key, part);
  }
  static Tag seal_whole(const GcmKey& key, GcmPart& part, Bytes additional) {
    return part.bytes < kLongBytesMin
               ? whole<Short, typename Gcm<Short>::Sealing>(key, part, additional)
               : whole<Long, typename Gcm<Long>::Sealing>(key, part, additional);
  }
  static Tag open_whole(const GcmKey& key, GcmPart& part, Bytes additional) {
    return part.bytes < kLongBytesMin
               ? whole<Short, typename Gcm<Short>::Opening>(key, part, additional)
               : whole<Long, typename Gcm<Long>::Opening>(key, part, additional);
  }

 private:
  template <typename V, typename Direction>
  static Tag whole(const GcmKey& key, GcmPart& part, Bytes additional) {
    return Gcm<V>::template whole<Direction>(key, part, additional);
  }
};

template <typename Short, typename Long = Short>
constexpr GcmWidth kWidthOf = {Gcm<Short>::schedule,
                               ByLength<Short, Long>::seal,
                               ByLength<Short, Long>::open,
                               ByLength<Short, Long>::seal_whole,
                               ByLength<Short, Long>::open_whole,
                               Gcm<Short>::hash,
                               Gcm<Short>::encrypt_block,
                               Long::kStreamedBytesMin};

}  // namespace
}  // namespace sealane
