// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// AES-256-GCM over a vector type V of some 16-byte lanes. A file that is compiled for one width
// defines SEALANE_GCM_TARGET, its instructions, and V, and includes this; all is local to that
// file.
//
// A stride is V::kVectors vectors. Its work, in the order it is written down:
//
//   1. start    counter blocks, two rounds on: from a table where the message is long
//   2. rounds   3 to 14, and between single AES instructions a step of hashing: this stride's bytes
//               when opening, those of the stride before when sealing
//   3. finish   plaintext or ciphertext is stored; reduction of the hash has ended by then
//
// AES, carry-less products, loads and stores have ports of their own, so what bounds the loop is
// how evenly they are mixed (docs/engines-x86.md). Ciphertext is read or written once: what is
// needed of it later lies in `held`, private memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "seal/delivery.h"
#include "seal/gcm_hash.h"
#include "seal/gcm_keystream.h"
#include "seal/gcm_schedule.h"

namespace sealane {
namespace {

template <typename V>
struct Gcm {
  using Type = typename V::Type;
  using Shape = GcmShape<V>;
  using Hash = Ghash<V>;
  using Ctr = Keystream<V>;
  using Counter = typename Ctr::Counter;
  using Stream = typename Ctr::Stream;
  using Nothing = typename Ctr::Nothing;
  using Each = typename Ctr::Each;
  static constexpr size_t kLanes = Shape::kLanes;
  static constexpr size_t kBlocks = Shape::kBlocks;
  static constexpr size_t kStride = Shape::kStride;
  static constexpr size_t kLineBytes = 64;
  static constexpr size_t kAhead = 1024;  // the CPU's own prefetching ends with a page
  static_assert(kStride <= PiecewiseDelivery::kPieceBytesMax);

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
    static constexpr size_t kSlotsOfLine = Shape::kSlots / kLines;
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
    Ctr::make_stream(key, counter, stream, nothing);
    copy_from_shared({in, bytes}, {held, bytes});
    std::memset(held + bytes, 0, sizeof held - bytes);
    put_opened<false>(stream, held, other, Each());
    std::memcpy(part.out + at, other, bytes);
    std::memset(other + bytes, 0, sizeof other - bytes);
    uint8_t* const sealed = opening ? held : other;
    const size_t blocks = (bytes + kGcmBlockBytes - 1) / kGcmBlockBytes;
    store_block(sealed + blocks * kGcmBlockBytes, lengths(part));
    hash = Hash::hash_blocks(key, hash, sealed, blocks + part.ends);
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
    alignas(64) uint8_t table[Ctr::kTableBytes];
  };

  // One stride's keystream, with what is done between.
  template <typename Between, typename Delivering>
  SEALANE_WIDE_INLINE static void make_stream(const GcmKey& key, Counter& counter, Stream& stream,
                                              Between& between, Delivering& work) {
    typename Ctr::template Both<Between, Delivering> both{between, work};
    Ctr::make_stream(key, counter, stream, both);
    work.advance();
  }

  template <typename Delivering, bool streamed>
  SEALANE_WIDE static GcmHash open_part(const GcmKey& key, const GcmPart& part) {
    Area area;
    Counter counter(part, area.table);
    V::store(area.held + kStride, V::first_lane(lengths(part)));
    // Narrow vectors take all registers there are when opening: the counter stays in memory.
    if constexpr (kLanes == 1) asm("" : : "r"(&counter));
    typename Hash::template Hashing<true> hashing{
        key, part.in, area.held, V::first_lane(element(part.so_far)), {}, {}};
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
      Ctr::make_stream(key, counter, stream, hashing);
      put_opened<streamed>(stream, area.held, part.out + at, Each());
      if (part.beside != nullptr) part.beside->carry_out(at, kStride);
    }
    Type hash = hashing.hash;
    Counter last = counter;
    if (whole != part.bytes) {
      hash = last_bytes<true>(key, last, hash, part, part.in + whole, whole);
    } else if (part.ends) {
      hash = Hash::hash_blocks(key, hash, area.held + kStride, 1);
    }
    return finish(part, area, hash);
  }

  template <typename Delivering, bool streamed>
  SEALANE_WIDE static GcmHash seal_part(const GcmKey& key, const GcmPart& part) {
    Area area;
    Counter counter(part, area.table);
    V::store(area.held + kStride, V::first_lane(lengths(part)));
    typename Hash::template Hashing<false> hashing{
        key, nullptr, area.held, V::first_lane(element(part.so_far)), {}, {}};
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
        at == 0 ? Ctr::make_stream(key, counter, stream, nothing)
                : Ctr::make_stream(key, counter, stream, hashing);
      }
      put_sealed<streamed>(stream, plain, area.held, part.out + at, Each());
    }
    if constexpr (Delivering::kDelivers) part.beside->skip(whole);
    Type hash = hashing.hash;
    Counter last = counter;
    const bool ends = part.ends && whole == part.bytes;
    if (whole != 0) {
      hash = Hash::hash_blocks(key, hash, area.held, kBlocks + ends);
    } else if (ends) {
      hash = Hash::hash_blocks(key, hash, area.held + kStride, 1);
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
    const GcmHash sum = hash_of(V::lane(hash));
    if (part.beside != nullptr) wipe(area.plain);
    if (part.bytes >= V::kTableBytesMin) wipe(area.table);
    V::clear_registers();
    return sum;
  }

  // ---- Which loop ----

  struct Sealing {
    static constexpr bool kSeals = true;
    template <typename Delivering, bool streamed>
    static constexpr auto kLoop = seal_part<Delivering, streamed>;
  };
  struct Opening {
    static constexpr bool kSeals = false;  // what is opened stays near: somebody reads it next
    template <typename Delivering, bool streamed>
    static constexpr auto kLoop = open_part<Delivering, streamed>;
  };

  using Loop = GcmHash (*)(const GcmKey& key, const GcmPart& part);

  // NOLINTBEGIN(misc-redundant-expression): two loops of one template are not the same
  template <typename Direction, bool streamed>
  static Loop loop_with(const Delivery& delivery) {
    if (delivery.combines()) {
      return delivery.streamed ? Direction::template kLoop<Work<true, true>, streamed>
                               : Direction::template kLoop<Work<true, false>, streamed>;
    }
    return delivery.streamed ? Direction::template kLoop<Work<false, true>, streamed>
                             : Direction::template kLoop<Work<false, false>, streamed>;
  }

  template <typename Direction>
  static Loop loop_for(const GcmPart& part) {
    const Delivery* const delivery = part.beside != nullptr ? &part.beside->left() : nullptr;
    const bool copies = delivery != nullptr && !delivery->combines() &&
                        delivery->first.data() != delivery->to.data();
    const bool sums = delivery != nullptr && delivery->combines() &&
                      delivery->type == ElementType::float32 && delivery->op == ReduceOperator::sum;
    const bool streamed = part.streamed && reinterpret_cast<uintptr_t>(part.out) % kLineBytes == 0;
    if (copies || sums) {
      if constexpr (Direction::kSeals) {
        if (streamed) return loop_with<Direction, true>(*delivery);
      }
      return loop_with<Direction, false>(*delivery);
    }
    return streamed ? Direction::template kLoop<NoWork, true>
                    : Direction::template kLoop<NoWork, false>;
  }
  // NOLINTEND(misc-redundant-expression)

  // A whole message. The tag's mask comes first: it needs nothing of the rest.
  template <typename Direction>
  SEALANE_WIDE static Tag whole(const GcmKey& key, GcmPart& part, Bytes additional) {
    GcmBlock mask;
    store_block(&mask, _mm_aesenclast_si128(
                           Ctr::encrypt(key, counter_block(part.iv, 1), GcmKey::kRounds - 1),
                           block_at(&key.round_keys[GcmKey::kRounds])));
    asm volatile("" : : "r"(&mask) : "memory");  // here and nowhere else
    // At once, as it will be read: stored in halves it would have to be waited for.
    const __m128i begun = Hash::hash_padded(key, _mm_setzero_si128(), additional);
    store_block(&part.so_far, _mm_shuffle_epi32(begun, 0x4e));
    part.ends = true;
    part.lengths = {additional.size() * 8, part.bytes * 8};
    const GcmHash sum = loop_for<Direction>(part)(key, part);
    Tag tag;
    store_block(tag.data(),
                _mm_xor_si128(_mm_shuffle_epi8(element(sum), reversal()), block_at(&mask)));
    // Who knows them has the hash's key.
    store_block(&mask, _mm_setzero_si128());
    store_block(&part.so_far, _mm_setzero_si128());
    asm volatile("" : : "r"(&mask), "r"(&part.so_far) : "memory");
    V::clear_registers();
    return tag;
  }
};

// Long strides keep AES busy, short ones waste less of a message's end. They are one type where
// there are no registers for long ones.
template <typename Short, typename Long>
struct ByLength {
  static constexpr uint64_t kLongBytesMin = 1_KiB;

  // One call, and the last thing done: a hash that is handed on leaves no copy behind.
  static GcmHash seal(const GcmKey& key, const GcmPart& part) {
    const auto loop = part.bytes < kLongBytesMin
                          ? Gcm<Short>::template loop_for<typename Gcm<Short>::Sealing>(part)
                          : Gcm<Long>::template loop_for<typename Gcm<Long>::Sealing>(part);
    return loop(key, part);
  }
  static GcmHash open(const GcmKey& key, const GcmPart& part) {
    const auto loop = part.bytes < kLongBytesMin
                          ? Gcm<Short>::template loop_for<typename Gcm<Short>::Opening>(part)
                          : Gcm<Long>::template loop_for<typename Gcm<Long>::Opening>(part);
    return loop(key, part);
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
constexpr GcmWidth kWidthOf = {GcmSchedule<Short>::schedule,      ByLength<Short, Long>::seal,
                               ByLength<Short, Long>::open,       ByLength<Short, Long>::seal_whole,
                               ByLength<Short, Long>::open_whole, Ghash<Short>::hash,
                               Keystream<Short>::encrypt_block,   Long::kStreamedBytesMin};

}  // namespace
}  // namespace sealane
