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

// What the loops share: in the frame of who calls them, which wipes it. For strides of any length.
struct GcmArea {
  alignas(64) uint8_t held[kGcmStrideBytesMax];  // sealed
  alignas(64) uint8_t plain[kGcmStrideBytesMax];
  alignas(64) uint8_t table[kGcmTableBytes];
  alignas(64) uint8_t lengths[kGcmVectorBytesMax];
  GcmHash sum;  // of a part; in a register somebody below might save it
  bool ends;    // the message, with the part: its lengths are hashed behind it
  // Where the frames of the loops end.
  const uint8_t* deepest = reinterpret_cast<const uint8_t*>(this);

  // In each of them. With what a function may keep below its stack pointer.
  SEALANE_WIDE_INLINE void note_frame() {
    const uint8_t* here;
    asm volatile("mov %%rsp, %0" : "=r"(here));
    deepest = std::min(deepest, here - 128);
  }
  // In general registers from here on: as a whole it might go through a vector register.
  SEALANE_WIDE_INLINE GcmHash take_sum() {
    uint64_t high = sum.high;
    uint64_t low = sum.low;
    asm volatile("" : "+r"(high), "+r"(low));
    sum = {};
    asm volatile("" : : "r"(&sum) : "memory");
    return {high, low};
  }
};

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
  static constexpr size_t kReadAhead = 2048;  // the CPU's own prefetching ends with a page
  static constexpr size_t kWriteAhead = 1024;
  using Lines = std::make_index_sequence<kStride / kLineBytes>;
  static_assert(kStride <= PiecewiseDelivery::kPieceBytesMax);

  // ---- What is delivered in the loop itself: copies, and sums of float32 ----

  struct NoWork {
    static constexpr bool kDelivers = false;
    SEALANE_WIDE_INLINE NoWork(const GcmPart&, uint8_t*) {}
  };

  // A line at a time, so that what is streamed leaves the core as whole lines.
  template <bool sums>
  struct Work {
    static constexpr bool kDelivers = true;
    static constexpr size_t kSlotsOfLine = Shape::kSlots / Lines::size();
    const uint8_t* first;
    const uint8_t* second;
    uint8_t* to;
    uint8_t* plain;  // of sealing: where the loop finds it; else nullptr
    size_t bytes;    // whole strides of it
    bool streamed;

    SEALANE_WIDE_INLINE Work(const GcmPart& part, uint8_t* plain_)
        : first(part.beside->left().first.data()),
          second(part.beside->left().second.data()),
          to(part.beside->left().to.data()),
          plain(plain_),
          bytes(std::min(part.beside->left().to.size(), part.bytes) / kStride * kStride),
          streamed(part.beside->left().streamed) {}

    template <size_t slot>
    SEALANE_WIDE_INLINE void in_slot() {
      if constexpr (slot % kSlotsOfLine == kSlotsOfLine / 2) {
        line<slot / kSlotsOfLine * kLineBytes>(std::make_index_sequence<kLineBytes / V::kBytes>());
      }
    }
    template <size_t at, size_t... i>
    SEALANE_WIDE_INLINE void line(std::index_sequence<i...>) {
      _mm_prefetch(first + at + kReadAhead, _MM_HINT_T0);
      if constexpr (sums) _mm_prefetch(second + at + kReadAhead, _MM_HINT_T0);
      const Type values[] = {value(at + i * V::kBytes)...};
      (V::put(to + at + i * V::kBytes, values[i], streamed), ...);
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
  SEALANE_WIDE_INLINE static void ask_to_read(const uint8_t* from, std::index_sequence<i...>) {
    (_mm_prefetch(from + kReadAhead + i * kLineBytes, _MM_HINT_T0), ...);
  }
  // Nothing behind the part: somebody may be reading there.
  template <size_t... i>
  SEALANE_WIDE_INLINE static void ask_to_write(const GcmPart& part, size_t at, bool streamed,
                                               std::index_sequence<i...>) {
    if (!part.asks_to_write || streamed || at + kWriteAhead + kStride > part.bytes) return;
    (__builtin_prefetch(part.out + at + kWriteAhead + i * kLineBytes, 1), ...);
  }

  template <size_t... i>
  SEALANE_WIDE_INLINE static void put_opened(const Stream& stream, const uint8_t* held,
                                             uint8_t* out, bool streamed,
                                             std::index_sequence<i...>) {
    (V::put(out + i * V::kBytes, V::add(stream.state[i], V::load(held + i * V::kBytes)), streamed),
     ...);
  }

  // What is hashed later is another value to the compiler than what is stored where others may
  // write: it cannot be fetched from there.
  template <size_t... i>
  SEALANE_WIDE_INLINE static void put_sealed(Stream& stream, const uint8_t* plain, uint8_t* held,
                                             uint8_t* out, bool streamed,
                                             std::index_sequence<i...>) {
    ((stream.state[i] = V::add(stream.state[i], V::load(plain + i * V::kBytes)),
      V::store(held + i * V::kBytes, stream.state[i]), V::keep(stream.state[i]),
      V::put(out + i * V::kBytes, stream.state[i], streamed)),
     ...);
  }

  // ---- A part ----

  // One stride's keystream, with what is done between.
  template <typename Between, typename Delivering>
  SEALANE_WIDE_INLINE static void make_stream(const GcmKey& key, Counter& counter, Stream& stream,
                                              Between& between, Delivering& work) {
    typename Ctr::template Both<Between, Delivering> both{between, work};
    Ctr::make_stream(key, counter, stream, both);
    work.advance();
  }

  SEALANE_WIDE_INLINE static bool streams(const GcmPart& part) {
    return part.streamed && reinterpret_cast<uintptr_t>(part.out) % kLineBytes == 0;
  }
  SEALANE_WIDE_INLINE static bool keeps_table(const GcmPart& part) {
    return part.bytes >= V::kTableBytesMin;
  }

  template <typename Hashing>
  SEALANE_WIDE_INLINE static void open_stride(const GcmKey& key, const GcmPart& part, size_t at,
                                              bool streamed, Counter& counter, Stream& stream,
                                              Hashing& hashing) {
    ask_to_read(part.in + at, Lines());
    ask_to_write(part, at, streamed, Lines());
    hashing.in = part.in + at;
    Ctr::make_stream(key, counter, stream, hashing);
    put_opened(stream, hashing.held, part.out + at, streamed, Each());
    if (part.beside != nullptr) part.beside->carry_out(at, kStride);
  }

  // Whole strides, of which there is one at least. `so_far` and what is returned: the hash, with
  // the message's lengths if it ends with them.
  template <typename Delivering>
  SEALANE_WIDE static __m128i open_strides(const GcmKey& key, const GcmPart& part, GcmArea& area,
                                           __m128i so_far) {
    area.note_frame();
    Counter counter(part.iv, part.first_block, area.table, keeps_table(part));
    // Narrow vectors take all registers there are when opening: the counter stays in memory.
    if constexpr (kLanes == 1) asm("" : : "r"(&counter));
    typename Hash::template Hashing<true, false> hashing{key, area.held, V::first_lane(so_far)};
    Stream stream;
    Delivering work(part, nullptr);
    size_t at = 0;
    if constexpr (Delivering::kDelivers) {
      for (; at < work.bytes; at += kStride) {
        ask_to_read(part.in + at, Lines());
        ask_to_write(part, at, false, Lines());
        hashing.in = part.in + at;
        make_stream(key, counter, stream, hashing, work);
        put_opened(stream, area.held, part.out + at, false, Each());  // somebody reads it next
      }
      part.beside->skip(at);
    }
    const size_t whole = part.bytes / kStride * kStride;
    const bool streamed = streams(part) && !Delivering::kDelivers;
    const bool ends = area.ends && whole == part.bytes;
    for (; at + (ends ? kStride : 0) < whole; at += kStride) {
      open_stride(key, part, at, streamed, counter, stream, hashing);
    }
    if (at < whole) {
      typename Hash::template Hashing<true, true> last{key, area.held, hashing.hash, nullptr,
                                                       area.lengths};
      open_stride(key, part, at, streamed, counter, stream, last);
      return V::lane(last.hash);
    }
    if (ends) hashing.hash = Hash::hash_one(key, hashing.hash, V::load(area.lengths));
    return V::lane(hashing.hash);
  }

  // The last one's hash has no AES to go with.
  template <typename Delivering>
  SEALANE_WIDE static __m128i seal_strides(const GcmKey& key, const GcmPart& part, GcmArea& area,
                                           __m128i so_far) {
    area.note_frame();
    Counter counter(part.iv, part.first_block, area.table, keeps_table(part));
    typename Hash::template Hashing<false, false> hashing{key, area.held, V::first_lane(so_far)};
    Nothing nothing;
    Stream stream;
    Delivering work(part, area.plain);
    const size_t whole = part.bytes / kStride * kStride;
    const bool streamed = streams(part);
    size_t at = 0;
    do {
      const uint8_t* plain = area.plain;
      ask_to_write(part, at, streamed, Lines());
      if constexpr (Delivering::kDelivers) {
        at == 0 ? make_stream(key, counter, stream, nothing, work)
                : make_stream(key, counter, stream, hashing, work);
      } else {
        plain = plaintext(part, at, kStride);
        at == 0 ? Ctr::make_stream(key, counter, stream, nothing)
                : Ctr::make_stream(key, counter, stream, hashing);
      }
      put_sealed(stream, plain, area.held, part.out + at, streamed, Each());
      at += kStride;
    } while (at < whole);
    if constexpr (Delivering::kDelivers) part.beside->skip(whole);
    return V::lane(Hash::hash_stride(key, hashing.hash, stream.state, area.lengths,
                                     area.ends && whole == part.bytes, Each()));
  }

  SEALANE_WIDE_INLINE static const uint8_t* plaintext(const GcmPart& part, size_t at,
                                                      size_t bytes) {
    if (part.beside != nullptr) return part.beside->carry_out(at, bytes);
    ask_to_read(part.in + at, Lines());
    return part.in + at;
  }

  // The last bytes, a stride or less: a whole stride's keystream takes no longer than a block's.
  // The CPU finds by itself what it can do beside AES. No libc: it would leave them in registers
  // that this width does not know.
  template <bool seals>
  SEALANE_WIDE static __m128i crypt_last(const GcmKey& key, const GcmPart& part, size_t bytes,
                                         GcmArea& area, __m128i so_far) {
    area.note_frame();
    const size_t begin = part.bytes - bytes;
    const uint8_t* const in = seals ? plaintext(part, begin, bytes) : part.in + begin;
    Counter counter(part.iv, part.first_block + begin / kGcmBlockBytes, area.table, false);
    Stream stream;
    Nothing nothing;
    Ctr::make_stream(key, counter, stream, nothing);
    put(stream, area.plain, Each());
    const size_t blocks = (bytes + kGcmBlockBytes - 1) / kGcmBlockBytes;
    typename Hash::Run hash(key, V::first_lane(so_far), blocks + area.ends);
    if (area.ends) Hash::add_lengths(key, hash.sums, area.lengths);
    for (size_t at = 0; at < bytes; at += V::kBytes) {
      const size_t left = bytes - at;
      const bool few = left < V::kBytes;
      Type text = few ? V::load_few(in + at, left) : V::load(in + at);
      V::keep(text);  // from here on in a register: it is not fetched again
      const Type made = V::add(text, V::load(area.plain + at));
      Type sealed = seals ? made : text;
      V::keep(sealed);  // another value than what is stored, as above
      if (seals && few) sealed = V::only(sealed, left);
      few ? V::store_few(part.out + begin + at, made, left) : V::store(part.out + begin + at, made);
      hash.add(sealed);
    }
    return V::lane(hash.sum());
  }
  template <size_t... i>
  SEALANE_WIDE_INLINE static void put(const Stream& stream, uint8_t* to,
                                      std::index_sequence<i...>) {
    (V::store(to + i * V::kBytes, stream.state[i]), ...);
  }

  // ---- Which loop ----

  using Loop = __m128i (*)(const GcmKey& key, const GcmPart& part, GcmArea& area, __m128i so_far);
  template <bool seals, typename Delivering>
  static constexpr Loop loop() {
    if constexpr (seals) {
      return seal_strides<Delivering>;
    } else {
      return open_strides<Delivering>;
    }
  }

  template <bool seals>
  static Loop loop_for(const GcmPart& part) {
    if (part.beside == nullptr) return loop<seals, NoWork>();
    const Delivery& left = part.beside->left();
    if (!left.combines() && left.first.data() != left.to.data()) return loop<seals, Work<false>>();
    const bool sums = left.type == ElementType::float32 && left.op == ReduceOperator::sum;
    return left.combines() && sums ? loop<seals, Work<true>>() : loop<seals, NoWork>();
  }

  // ---- Parts and whole messages ----

  SEALANE_WIDE_INLINE static Type lengths(uint64_t additional_bytes, uint64_t bytes) {
    return V::first_lane(_mm_shuffle_epi8(element({additional_bytes * 8, bytes * 8}), reversal()));
  }

  template <bool seals>
  SEALANE_WIDE_INLINE static __m128i crypt(const GcmKey& key, const GcmPart& part, GcmArea& area,
                                           __m128i hash) {
    using Short = Gcm<typename V::Short>;
    const size_t last = part.bytes % kStride;
    if (part.bytes >= kStride) {
      hash = loop_for<seals>(part)(key, part, area, hash);
      if (part.streamed) _mm_sfence();  // such stores are ordered with nothing else
      if (last == 0) return hash;
    }
    if (last > Short::kStride) return crypt_last<seals>(key, part, last, area, hash);
    if (last != 0) return Short::template crypt_last<seals>(key, part, last, area, hash);
    if (!area.ends) return hash;
    return V::lane(Hash::hash_one(key, V::first_lane(hash), V::load(area.lengths)));
  }
  template <bool seals>
  [[gnu::noinline]] SEALANE_WIDE static void hash_part(const GcmKey& key, const GcmPart& part,
                                                       GcmArea& area) {
    area.ends = false;
    area.note_frame();
    V::store(area.lengths, V::zero());
    area.sum = hash_of(crypt<seals>(key, part, area, element(part.so_far)));
  }
  template <bool seals>
  [[gnu::noinline]] SEALANE_WIDE static Tag tag_of_whole(const GcmKey& key, const GcmPart& part,
                                                         Bytes additional, GcmArea& area) {
    // The tag's mask comes first: it needs nothing of the rest.
    GcmBlock mask;
    store_block(&mask, Ctr::encrypt(key, counter_block(part.iv, 1)));
    asm volatile("" : : "r"(&mask) : "memory");  // here and nowhere else
    area.ends = true;
    area.note_frame();
    V::store(area.lengths, lengths(additional.size(), part.bytes));
    const __m128i sum =
        crypt<seals>(key, part, area, Hash::hash_padded(key, _mm_setzero_si128(), additional));
    Tag tag;
    store_block(tag.data(), _mm_xor_si128(_mm_shuffle_epi8(sum, reversal()), block_at(&mask)));
    return tag;
  }

  // Whatever a compiler has put of hash, mask and cipher in the frames below: who knows one of them
  // has the hash's key, or the cipher's. A frame at their place, as deep as they were.
  [[gnu::noinline]] SEALANE_WIDE static void wipe_frames(const uint8_t* deepest) {
    const auto* const here = static_cast<const uint8_t*>(__builtin_frame_address(0));
    const size_t bytes = static_cast<size_t>(here - deepest) + sizeof(__m256i);
    auto* const frames = static_cast<uint8_t*>(__builtin_alloca(bytes));
    const auto wipe_at = [&](size_t at) __attribute__((target(SEALANE_GCM_TARGET), always_inline)) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(frames + at), _mm256_setzero_si256());
    };
    for (size_t at = 0; at + sizeof(__m256i) < bytes; at += sizeof(__m256i)) wipe_at(at);
    wipe_at(bytes - sizeof(__m256i));
    asm volatile("" : : "r"(frames) : "memory");
  }
  template <size_t... i>
  SEALANE_WIDE_INLINE static void put_zeros(uint8_t* to, std::index_sequence<i...>) {
    (V::store(to + i * V::kBytes, V::zero()), ...);
    asm volatile("" : : "r"(to) : "memory");
  }
  SEALANE_WIDE_INLINE static void wipe_traces(const GcmPart& part, GcmArea& area) {
    if (part.beside != nullptr || part.bytes % kStride != 0) put_zeros(area.plain, Each());
    if (keeps_table(part)) wipe(area.table);
    wipe_frames(area.deepest);
    V::clear_registers();
  }

  template <bool seals>
  SEALANE_WIDE static GcmHash crypt_part(const GcmKey& key, const GcmPart& part) {
    GcmArea area;
    hash_part<seals>(key, part, area);
    wipe_traces(part, area);
    return area.take_sum();
  }
  template <bool seals>
  SEALANE_WIDE static Tag crypt_whole(const GcmKey& key, const GcmPart& part, Bytes additional) {
    GcmArea area;
    const Tag tag = tag_of_whole<seals>(key, part, additional, area);
    wipe_traces(part, area);
    return tag;
  }

  SEALANE_WIDE static Tag tag(const GcmKey& key, const Iv& iv, GcmHash hash,
                              uint64_t additional_bytes, uint64_t bytes) {
    const Type sum =
        Hash::hash_one(key, V::first_lane(element(hash)), lengths(additional_bytes, bytes));
    Tag tag;
    store_block(tag.data(), _mm_xor_si128(_mm_shuffle_epi8(V::lane(sum), reversal()),
                                          Ctr::encrypt(key, counter_block(iv, 1))));
    asm volatile("" : : "r"(tag.data()) : "memory");
    V::clear_registers();
    return tag;
  }
};

// Long strides keep AES busy, short ones waste less of a message's end. They are one type where
// there are no registers for long ones.
template <typename Long>
struct ByLength {
  using Short = typename Long::Short;
  static constexpr uint64_t kLongBytesMin = 512;

  template <bool seals>
  static GcmHash crypt_part(const GcmKey& key, const GcmPart& part) {
    return part.bytes < kLongBytesMin ? Gcm<Short>::template crypt_part<seals>(key, part)
                                      : Gcm<Long>::template crypt_part<seals>(key, part);
  }
  template <bool seals>
  static Tag crypt_whole(const GcmKey& key, const GcmPart& part, Bytes additional) {
    return part.bytes < kLongBytesMin
               ? Gcm<Short>::template crypt_whole<seals>(key, part, additional)
               : Gcm<Long>::template crypt_whole<seals>(key, part, additional);
  }
};

template <typename V>
constexpr GcmWidth kWidthOf = {GcmSchedule<V>::schedule,
                               ByLength<V>::template crypt_part<true>,
                               ByLength<V>::template crypt_part<false>,
                               ByLength<V>::template crypt_whole<true>,
                               ByLength<V>::template crypt_whole<false>,
                               Gcm<V>::tag,
                               Ghash<V>::hash,
                               Ghash<V>::join,
                               Keystream<V>::encrypt_block,
                               V::kStreamedBytesMin};

}  // namespace
}  // namespace sealane
