// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A stride is four vectors of four blocks. Its hash is that of four streams side by side: lane l of
// a vector takes the blocks l, l+4, l+8, …, each multiplied by the same power of H, so lanes need
// no joining until the end. Only the last stride uses the powers that put the lanes in order:
//
//   every stride but the last   (y + c0)·H^16 + c1·H^12 + c2·H^8 + c3·H^4      in all lanes
//   the last                    (y + c0)·H^(16-l) + … + c3·H^(4-l)            in lane l
//
// Field elements are byte-reversed blocks; powers are kept times x, which makes the product of two
// reflected elements come out in place. Reduction is by x^128 + x^127 + x^126 + x^121 + 1.

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "seal/element_vectors.h"
#include "seal/fused_gcm.h"
#include "seal/reduce.h"

// GCC 12's intrinsics name an undefined vector where a result has no lanes to keep.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace sealane {
namespace {

using namespace element_vectors;

#define SEALANE_VAES \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq,aes,pclmul,sse4.1")]]
#define SEALANE_VAES_INLINE SEALANE_VAES SEALANE_INLINE

constexpr size_t kRounds = 14;
constexpr size_t kVectors = 4;  // of a stride
constexpr size_t kVectorBytes = 64;
constexpr size_t kPowers = 16;
static_assert(FusedGcm::kStrideBytes == kVectors * kVectorBytes);

// Asked apart: not every compiler knows this feature by name.
bool cpu_has_vaes() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & bit_VAES) != 0;
}

bool cpu_can() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("vpclmulqdq") && cpu_has_vaes();
}

// What the loops read, spread over vectors beforehand.
struct Schedule {
  __m512i round_keys[kRounds + 1];
  __m512i in_stream[kVectors];  // H^16, H^12, H^8, H^4 in all lanes
  __m512i at_end[kVectors];     // H^(16-l), …, H^(4-l) in lane l
  __m128i subkey;               // H, times x
};

// ---- The field ----

SEALANE_VAES_INLINE __m128i reversal() {
  return _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
SEALANE_VAES_INLINE __m128i polynomial() {
  return _mm_set_epi64x(static_cast<long long>(0xc200000000000000), 1);
}

SEALANE_VAES_INLINE __m128i multiply(__m128i a, __m128i b) {
  const __m128i middle =
      _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x01), _mm_clmulepi64_si128(a, b, 0x10));
  __m128i low = _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x00), _mm_slli_si128(middle, 8));
  const __m128i high = _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x11), _mm_srli_si128(middle, 8));
  for (int half = 0; half < 2; ++half) {
    low =
        _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), _mm_clmulepi64_si128(low, polynomial(), 0x10));
  }
  return _mm_xor_si128(high, low);
}

SEALANE_VAES_INLINE __m128i times_x(__m128i element) {
  uint64_t low = static_cast<uint64_t>(_mm_extract_epi64(element, 0));
  uint64_t high = static_cast<uint64_t>(_mm_extract_epi64(element, 1));
  const uint64_t carry = uint64_t{0} - (high >> 63);  // all ones or none: no branch on a secret
  high = (high << 1 | low >> 63) ^ (carry & 0xc200000000000000);
  low = low << 1 ^ (carry & 1);
  return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}

// A sum of products, not reduced yet.
struct Products {
  __m512i low, middle, high;
};

SEALANE_VAES_INLINE void add_product(Products& sum, __m512i a, __m512i b) {
  constexpr int kXorOfThree = 0x96;
  sum.low = _mm512_xor_si512(sum.low, _mm512_clmulepi64_epi128(a, b, 0x00));
  sum.high = _mm512_xor_si512(sum.high, _mm512_clmulepi64_epi128(a, b, 0x11));
  sum.middle = _mm512_ternarylogic_epi64(sum.middle, _mm512_clmulepi64_epi128(a, b, 0x01),
                                         _mm512_clmulepi64_epi128(a, b, 0x10), kXorOfThree);
}

SEALANE_VAES_INLINE __m512i reduced(const Products& sum) {
  const __m512i modulus = _mm512_broadcast_i32x4(polynomial());
  __m512i low = _mm512_xor_si512(sum.low, _mm512_bslli_epi128(sum.middle, 8));
  const __m512i high = _mm512_xor_si512(sum.high, _mm512_bsrli_epi128(sum.middle, 8));
  for (int half = 0; half < 2; ++half) {
    low = _mm512_xor_si512(_mm512_shuffle_epi32(low, _MM_PERM_BADC),
                           _mm512_clmulepi64_epi128(low, modulus, 0x10));
  }
  return _mm512_xor_si512(high, low);
}

SEALANE_VAES_INLINE __m128i sum_of_lanes(__m512i lanes) {
  const __m256i two =
      _mm256_xor_si256(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
  return _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
}

// ---- AES ----

SEALANE_VAES_INLINE __m128i encrypt(const Schedule& key, __m128i block) {
  block = _mm_xor_si128(block, _mm512_castsi512_si128(key.round_keys[0]));
  for (size_t i = 1; i < kRounds; ++i) {
    block = _mm_aesenc_si128(block, _mm512_castsi512_si128(key.round_keys[i]));
  }
  return _mm_aesenclast_si128(block, _mm512_castsi512_si128(key.round_keys[kRounds]));
}

// The keystream of one stride, in steps, so that other work can be put in between.
struct Keystream {
  __m512i state[kVectors];

  SEALANE_VAES_INLINE void start(const Schedule& key, __m512i& counters) {
    const __m512i four = _mm512_broadcast_i32x4(_mm_set_epi32(0, 0, 0, 4));
    const __m512i reverse = _mm512_broadcast_i32x4(reversal());
#pragma GCC unroll 4
    for (__m512i& vector : state) {
      vector = _mm512_xor_si512(_mm512_shuffle_epi8(counters, reverse), key.round_keys[0]);
      counters = _mm512_add_epi32(counters, four);
    }
  }
  template <size_t first, size_t last>
  SEALANE_VAES_INLINE void rounds(const Schedule& key) {
#pragma GCC unroll 16
    for (size_t i = first; i <= last; ++i) {
#pragma GCC unroll 4
      for (__m512i& vector : state) vector = _mm512_aesenc_epi128(vector, key.round_keys[i]);
    }
  }
  SEALANE_VAES_INLINE void finish(const Schedule& key) {
#pragma GCC unroll 4
    for (__m512i& vector : state) {
      vector = _mm512_aesenclast_epi128(vector, key.round_keys[kRounds]);
    }
  }
};

// From here on the value is in a register: the compiler can neither fetch it from memory again nor
// read back what was stored.
SEALANE_VAES_INLINE void keep(__m512i& value) { asm("" : "+v"(value)); }

// ---- What is delivered ----

struct Pointers {
  const uint8_t* first;
  const uint8_t* second;
  uint8_t* to;
};

// The CPU's own prefetching ends with each page; the loops have the time to ask for more.
constexpr size_t kAhead = 2048;
constexpr size_t kAheadInRecord = 1024;

SEALANE_VAES_INLINE void ask_for(const uint8_t* line) { _mm_prefetch(line, _MM_HINT_T0); }

struct Copied {
  static constexpr bool kDelivers = true;
  SEALANE_VAES_INLINE static __m512i line(const Pointers& from, size_t at) {
    ask_for(from.first + at + kAhead);
    return _mm512_loadu_si512(from.first + at);
  }
};

struct Nothing : Copied {
  static constexpr bool kDelivers = false;
};

template <typename Format>
struct Summed {
  static constexpr bool kDelivers = true;
  SEALANE_VAES_INLINE static __m512i line(const Pointers& from, size_t at) {
    ask_for(from.first + at + kAhead);
    ask_for(from.second + at + kAhead);
    alignas(kVectorBytes) uint8_t sum[kVectorBytes];
#pragma GCC unroll 4
    for (size_t i = 0; i < kVectorBytes; i += Format::kStep) {
      Combine<Format, Sum>::step(from.first + at + i, from.second + at + i, sum + i);
    }
    return _mm512_load_si512(sum);
  }
};

struct Cached {
  SEALANE_VAES_INLINE static void store(uint8_t* to, __m512i line) {
    _mm512_storeu_si512(to, line);
  }
};

// Whole cache lines only.
struct Streamed {
  SEALANE_VAES_INLINE static void store(uint8_t* to, __m512i line) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), line);
  }
};

bool aligned(const uint8_t* to) { return reinterpret_cast<uintptr_t>(to) % kVectorBytes == 0; }

// ---- One message ----

struct Message {
  const Iv& iv;
  Bytes additional;
  const uint8_t* in;  // of open: the ciphertext
  uint8_t* out;
  size_t bytes;
  Pointers delivery = {};
  size_t delivered = 0;  // whole strides; of seal: all
};

struct Running {
  __m128i first_counter;
  __m512i counters;
  __m512i hash;  // four streams
};

SEALANE_VAES_INLINE Running begin(const Schedule& key, const Message& message) {
  Running running;
  alignas(16) uint8_t block[16] = {};
  std::copy(message.iv.begin(), message.iv.end(), block);
  block[15] = 1;
  running.first_counter = _mm_load_si128(reinterpret_cast<const __m128i*>(block));
  running.counters =
      _mm512_add_epi32(_mm512_broadcast_i32x4(_mm_shuffle_epi8(running.first_counter, reversal())),
                       _mm512_set_epi32(0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1));
  __m128i hash = _mm_setzero_si128();
  for (size_t at = 0; at < message.additional.size(); at += sizeof block) {
    std::memset(block, 0, sizeof block);
    std::memcpy(block, message.additional.data() + at,
                std::min(sizeof block, message.additional.size() - at));
    const __m128i part = _mm_load_si128(reinterpret_cast<const __m128i*>(block));
    hash = multiply(_mm_xor_si128(hash, _mm_shuffle_epi8(part, reversal())), key.subkey);
  }
  running.hash = _mm512_zextsi128_si512(hash);
  return running;
}

SEALANE_VAES_INLINE Tag end(const Schedule& key, const Message& message, const Running& running) {
  const uint64_t additional_bits = message.additional.size() * 8;
  const uint64_t bits = message.bytes * 8;
  const __m128i lengths =
      _mm_set_epi64x(static_cast<int64_t>(additional_bits), static_cast<int64_t>(bits));
  const __m128i hash = multiply(_mm_xor_si128(sum_of_lanes(running.hash), lengths), key.subkey);
  const __m128i mask = encrypt(key, running.first_counter);
  Tag tag;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(tag.data()),
                   _mm_xor_si128(_mm_shuffle_epi8(hash, reversal()), mask));
  return tag;
}

// One vector of a stride; the streams' hash so far goes in with the first.
template <size_t i>
SEALANE_VAES_INLINE void hash(Products& sum, __m512i so_far, const __m512i* ciphertext,
                              const __m512i* power) {
  __m512i blocks = _mm512_shuffle_epi8(ciphertext[i], _mm512_broadcast_i32x4(reversal()));
  if constexpr (i == 0) blocks = _mm512_xor_si512(so_far, blocks);
  add_product(sum, blocks, power[i]);
}

template <typename Work, typename Store>
SEALANE_VAES Tag open_all(const Schedule& key, const Message& message) {
  Running running = begin(key, message);
  for (size_t at = 0; at < message.bytes; at += FusedGcm::kStrideBytes) {
    Keystream stream;
    stream.start(key, running.counters);
    __m512i ciphertext[kVectors];
#pragma GCC unroll 4
    for (size_t i = 0; i < kVectors; ++i) {
      ask_for(message.in + at + i * kVectorBytes + kAheadInRecord);
      ciphertext[i] = _mm512_loadu_si512(message.in + at + i * kVectorBytes);
      keep(ciphertext[i]);
    }
    stream.rounds<1, 3>(key);
    const bool last = at + FusedGcm::kStrideBytes == message.bytes;
    const __m512i* power = last ? key.at_end : key.in_stream;
    Products sum{};
    hash<0>(sum, running.hash, ciphertext, power);
    stream.rounds<4, 5>(key);
    hash<1>(sum, running.hash, ciphertext, power);
    stream.rounds<6, 7>(key);
    hash<2>(sum, running.hash, ciphertext, power);
    stream.rounds<8, 9>(key);
    hash<3>(sum, running.hash, ciphertext, power);
    stream.rounds<10, 11>(key);
    if (Work::kDelivers && at < message.delivered) {
#pragma GCC unroll 4
      for (size_t line = at; line < at + FusedGcm::kStrideBytes; line += kVectorBytes) {
        Store::store(message.delivery.to + line, Work::line(message.delivery, line));
      }
    }
    stream.rounds<12, 13>(key);
    stream.finish(key);
#pragma GCC unroll 4
    for (size_t i = 0; i < kVectors; ++i) {
      _mm512_storeu_si512(message.out + at + i * kVectorBytes,
                          _mm512_xor_si512(stream.state[i], ciphertext[i]));
    }
    running.hash = reduced(sum);
  }
  return end(key, message, running);
}

// The hash of a stride is taken while the next one is encrypted: its ciphertext has to be there
// first.
template <typename Work, typename Store>
SEALANE_VAES Tag seal_all(const Schedule& key, const Message& message) {
  Running running = begin(key, message);
  __m512i before[kVectors] = {};  // the ciphertext of the stride before
  for (size_t at = 0; at < message.bytes; at += FusedGcm::kStrideBytes) {
    Keystream stream;
    stream.start(key, running.counters);
    if (at == 0) {
      stream.rounds<1, 11>(key);
    } else {
      Products sum{};
      stream.rounds<1, 2>(key);
      hash<0>(sum, running.hash, before, key.in_stream);
      stream.rounds<3, 4>(key);
      hash<1>(sum, running.hash, before, key.in_stream);
      stream.rounds<5, 6>(key);
      hash<2>(sum, running.hash, before, key.in_stream);
      stream.rounds<7, 8>(key);
      hash<3>(sum, running.hash, before, key.in_stream);
      stream.rounds<9, 11>(key);
      running.hash = reduced(sum);
    }
    __m512i plaintext[kVectors];
#pragma GCC unroll 4
    for (size_t i = 0; i < kVectors; ++i) {
      const size_t line = at + i * kVectorBytes;
      plaintext[i] = Work::line(message.delivery, line);
      if constexpr (Work::kDelivers) Store::store(message.delivery.to + line, plaintext[i]);
    }
    stream.rounds<12, 13>(key);
    stream.finish(key);
#pragma GCC unroll 4
    for (size_t i = 0; i < kVectors; ++i) {
      before[i] = _mm512_xor_si512(stream.state[i], plaintext[i]);
      keep(before[i]);
      _mm512_storeu_si512(message.out + at + i * kVectorBytes, before[i]);
    }
  }
  Products sum{};
  hash<0>(sum, running.hash, before, key.at_end);
  hash<1>(sum, running.hash, before, key.at_end);
  hash<2>(sum, running.hash, before, key.at_end);
  hash<3>(sum, running.hash, before, key.at_end);
  running.hash = reduced(sum);
  return end(key, message, running);
}

// ---- Which loop ----

using Loop = Tag (*)(const Schedule& key, const Message& message);

struct Opening {
  template <typename Work, typename Store>
  static constexpr Loop kLoop = open_all<Work, Store>;
};
struct Sealing {
  template <typename Work, typename Store>
  static constexpr Loop kLoop = seal_all<Work, Store>;
};

template <typename Direction, typename Work>
Loop loop_for_store(const Delivery& delivery) {
  if (delivery.streamed && aligned(delivery.to.data())) {
    return Direction::template kLoop<Work, Streamed>;
  }
  return Direction::template kLoop<Work, Cached>;
}

// nullptr: no loop does that.
template <typename Direction>
Loop loop_for(const Delivery& delivery) {
  if (delivery.empty()) return Direction::template kLoop<Nothing, Cached>;
  if (!delivery.combines()) return loop_for_store<Direction, Copied>(delivery);
  if (delivery.op != ReduceOperator::sum) return nullptr;
  switch (delivery.type) {
    case ElementType::float32:
      return loop_for_store<Direction, Summed<Native<float>>>(delivery);
    case ElementType::bfloat16:
      return loop_for_store<Direction, Summed<BrainFloat>>(delivery);
    default:
      return nullptr;
  }
}

Delivery part(const Delivery& whole, size_t at, size_t count) {
  Delivery part = whole;
  part.first = whole.first.subspan(at, count);
  if (whole.combines()) part.second = whole.second.subspan(at, count);
  part.to = whole.to.subspan(at, count);
  return part;
}

// Bytes in front of the first line of `to` that can be streamed as a whole.
size_t bytes_before_line(const Delivery& delivery) {
  if (!delivery.streamed) return 0;
  const size_t past = reinterpret_cast<uintptr_t>(delivery.to.data()) % kVectorBytes;
  const size_t before = (kVectorBytes - past) % kVectorBytes;
  const size_t element = delivery.combines() ? element_bytes(delivery.type) : 1;
  return before % element == 0 ? before : 0;
}

class VaesFusedGcm final : public FusedGcm {
 public:
  explicit VaesFusedGcm(std::span<const uint8_t, kRoundKeysBytes> round_keys) {
    fill(key_, round_keys);
  }
  ~VaesFusedGcm() override { wipe({reinterpret_cast<uint8_t*>(&key_), sizeof key_}); }

  // Beside a stride of this message goes a stride of the delivery, or none, so the ends of a
  // delivery that does not begin at a line are carried out apart.
  Tag open(const Iv& iv, Bytes additional, Bytes ciphertext, MutableBytes plaintext,
           const Delivery& beside) const override {
    const size_t head = std::min(bytes_before_line(beside), beside.to.size());
    const size_t middle = (beside.to.size() - head) / kStrideBytes * kStrideBytes;
    const size_t tail = head + middle;
    carry_out(part(beside, 0, head));
    carry_out(part(beside, tail, beside.to.size() - tail));
    return run<Opening>({iv, additional, ciphertext.data(), plaintext.data(), ciphertext.size()},
                        part(beside, head, middle));
  }

  Tag seal(const Iv& iv, Bytes additional, const Delivery& source,
           MutableBytes ciphertext) const override {
    return run<Sealing>({iv, additional, nullptr, ciphertext.data(), ciphertext.size()}, source);
  }

 private:
  template <typename Direction>
  Tag run(Message message, const Delivery& delivery) const {
    const Loop loop = loop_for<Direction>(delivery);
    SEALANE_CHECK(loop != nullptr, "no loop does that");
    message.delivery = {delivery.first.data(), delivery.second.data(), delivery.to.data()};
    message.delivered = delivery.to.size();
    const Tag tag = loop(key_, message);
    if (delivery.streamed) _mm_sfence();  // non-temporal stores are ordered with nothing else
    return tag;
  }

  SEALANE_VAES static void fill(Schedule& key, std::span<const uint8_t, kRoundKeysBytes> bytes) {
    for (size_t i = 0; i <= kRounds; ++i) {
      key.round_keys[i] = _mm512_broadcast_i32x4(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data() + 16 * i)));
    }
    const __m128i subkey = encrypt(key, _mm_setzero_si128());
    key.subkey = times_x(_mm_shuffle_epi8(subkey, reversal()));
    __m128i power[kPowers + 1];
    power[1] = key.subkey;
    for (size_t i = 2; i <= kPowers; ++i) power[i] = multiply(power[i - 1], key.subkey);
#pragma GCC unroll 4
    for (size_t i = 0; i < kVectors; ++i) {
      const size_t highest = kPowers - 4 * i;
      key.in_stream[i] = _mm512_broadcast_i32x4(power[highest]);
      __m512i lanes = _mm512_castsi128_si512(power[highest]);
      lanes = _mm512_inserti32x4(lanes, power[highest - 1], 1);
      lanes = _mm512_inserti32x4(lanes, power[highest - 2], 2);
      key.at_end[i] = _mm512_inserti32x4(lanes, power[highest - 3], 3);
    }
    wipe({reinterpret_cast<uint8_t*>(power), sizeof power});
  }

  Schedule key_;
};

}  // namespace

bool FusedGcm::fits(uint64_t bytes, const Delivery& delivery) {
  const bool whole = bytes > 0 && bytes % kStrideBytes == 0 && bytes <= kRecordPayloadBytesMax;
  const bool alike = delivery.empty() || delivery.to.size() == bytes;
  return whole && alike && loop_for<Opening>(delivery) != nullptr;
}

std::unique_ptr<FusedGcm> FusedGcm::make(std::span<const uint8_t, kRoundKeysBytes> round_keys) {
  if (!cpu_can()) return nullptr;
  return std::make_unique<VaesFusedGcm>(round_keys);
}

}  // namespace sealane
