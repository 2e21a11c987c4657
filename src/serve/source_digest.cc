// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/source_digest.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/random.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sealane::serve {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
constexpr uint64_t kLane = 32;  // bytes taken at a time

uint64_t times(uint64_t a, uint64_t b) {
  const auto product = static_cast<Wide>(a) * b;
  const uint64_t sum =
      static_cast<uint64_t>(product & kPrime) + static_cast<uint64_t>(product >> 61);
  return sum >= kPrime ? sum - kPrime : sum;
}

uint64_t step(uint64_t sum, uint64_t point, uint32_t word) {
  const uint64_t next = times(sum, point) + word;
  return next >= kPrime ? next - kPrime : next;
}

// Words of 32 bits are added to the key's; of each pair the product; all products are summed up.
// `bytes` is a multiple of kLane.
uint64_t nh_portable(const uint8_t* data, const uint8_t* key, uint64_t bytes) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < bytes; i += 8) {
    uint32_t d[2];
    uint32_t k[2];
    std::memcpy(d, data + i, sizeof d);
    std::memcpy(k, key + i, sizeof k);
    sum += uint64_t{d[0] + k[0]} * uint64_t{d[1] + k[1]};
  }
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) uint64_t nh_avx2(const uint8_t* data, const uint8_t* key,
                                                 uint64_t bytes) {
  __m256i sum = _mm256_setzero_si256();
  for (uint64_t i = 0; i < bytes; i += kLane) {
    const __m256i d = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + i));
    const __m256i k = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(key + i));
    const __m256i both = _mm256_add_epi32(d, k);
    sum = _mm256_add_epi64(sum, _mm256_mul_epu32(both, _mm256_srli_epi64(both, 32)));
  }
  alignas(32) uint64_t parts[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts), sum);
  return parts[0] + parts[1] + parts[2] + parts[3];
}
#endif

using Nh = uint64_t(const uint8_t*, const uint8_t*, uint64_t);

Nh* best_nh() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return &nh_avx2;
#endif
  return &nh_portable;
}

Nh* const nh = best_nh();

}  // namespace

SourceDigest::SourceDigest() {
  SystemRandom random;
  random.fill(key_);
  random.fill({reinterpret_cast<uint8_t*>(points_.data()), sizeof points_});
  for (uint64_t& point : points_) point %= kPrime;
}

void SourceDigest::add_block(Value& running, const uint8_t* block, uint64_t bytes) const {
  for (size_t i = 0; i < points_.size(); ++i) {
    const uint64_t sum = nh(block, key_.data() + i * kShift, bytes);
    running.sums[i] = step(running.sums[i], points_[i], static_cast<uint32_t>(sum >> 32));
    running.sums[i] = step(running.sums[i], points_[i], static_cast<uint32_t>(sum));
  }
}

void SourceDigest::add(Value& running, const uint8_t* bytes, uint64_t count) const {
  while (count >= kBlockBytes) {
    add_block(running, bytes, kBlockBytes);
    bytes += kBlockBytes;
    count -= kBlockBytes;
  }
  if (count == 0) return;
  alignas(32) std::array<uint8_t, kBlockBytes> last{};
  std::memcpy(last.data(), bytes, count);
  add_block(running, last.data(), (count + kLane - 1) / kLane * kLane);
  for (size_t i = 0; i < points_.size(); ++i) {  // zeros at the end are no padding
    running.sums[i] = step(running.sums[i], points_[i], static_cast<uint32_t>(count));
  }
  wipe({last.data(), count});
}

SourceDigest::Value SourceDigest::of(const uint8_t* bytes, uint64_t count) const {
  Value value;
  add(value, bytes, count);
  return value;
}

}  // namespace sealane::serve
