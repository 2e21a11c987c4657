// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is a message sealed or opened in parts the message OpenSSL would have sealed, however it is cut?

#include "seal/split_gcm.h"

#include <rapidcheck/gtest.h>

#include <vector>

#include "seal/native.h"
#include "seal/openssl.h"

namespace sealane {
namespace {

constexpr uint64_t kBlock = kGcmBlockBytes;

std::vector<uint8_t> random_bytes(size_t count) {
  std::vector<uint8_t> out(count);
  SystemRandom().fill(out);
  return out;
}

// Each width this CPU has.
rc::Gen<const GcmWidth*> any_width() { return rc::gen::elementOf(native_widths()); }

GcmHash hash_additional(const SplitGcm& gcm, const std::vector<uint8_t>& additional) {
  GcmHash hash;
  for (size_t at = 0; at < additional.size(); at += kBlock) {
    GcmBlock block{};
    std::copy_n(additional.begin() + static_cast<std::ptrdiff_t>(at),
                std::min<size_t>(kBlock, additional.size() - at), block.begin());
    hash = gcm.join(hash, block);
  }
  return hash;
}

RC_GTEST_PROP(SplitGcm, PartsMakeTheMessageOpensslMakes, ()) {
  const auto key = random_bytes(Key::kBytes);
  if (native_widths().empty()) return;  // this build or CPU has none
  const SplitGcm whole(**any_width(), std::span<const uint8_t, Key::kBytes>(key));
  const SplitGcm* const gcm = &whole;
  Iv iv;
  SystemRandom().fill(iv);
  const auto additional = random_bytes(*rc::gen::inRange<size_t>(0, 60));
  const auto plain = random_bytes(*rc::gen::inRange<size_t>(1, 40000));

  std::vector<uint8_t> expected(plain.size());
  Tag expected_tag;
  auto secret = Key::from_bytes(key);
  openssl_engine().make(*secret)->seal(iv, additional, plain, expected, expected_tag);

  for (const bool seals : {true, false}) {
    const auto& in = seals ? plain : expected;
    std::vector<uint8_t> out(plain.size());
    GcmHash hash = hash_additional(*gcm, additional);
    for (uint64_t at = 0; at < in.size();) {
      const uint64_t blocks = *rc::gen::inRange<uint64_t>(1, 1200);
      const uint64_t bytes = std::min<uint64_t>(blocks * kBlock, in.size() - at);
      const GcmHash part = seals ? gcm->seal_part(iv, at / kBlock, &in[at], &out[at], bytes)
                                 : gcm->open_part(iv, at / kBlock, &in[at], &out[at], bytes);
      hash = gcm->join(hash, part, (bytes + kBlock - 1) / kBlock);
      at += bytes;
    }
    RC_ASSERT(out == (seals ? expected : plain));
    RC_ASSERT(gcm->tag(iv, hash, additional.size(), in.size()) == expected_tag);
  }
}

RC_GTEST_PROP(SplitGcm, KeystreamIsWhatSealsABlock, ()) {
  const auto key = random_bytes(Key::kBytes);
  if (native_widths().empty()) return;
  const SplitGcm whole(**any_width(), std::span<const uint8_t, Key::kBytes>(key));
  const SplitGcm* const gcm = &whole;
  Iv iv;
  SystemRandom().fill(iv);
  const uint64_t block = *rc::gen::inRange<uint64_t>(0, 1u << 31);
  const GcmBlock zero{};
  GcmBlock sealed;
  const GcmHash part = gcm->seal_part(iv, block, zero.data(), sealed.data(), kBlock);
  GcmBlock stream;
  gcm->keystream(iv, block, stream);
  RC_ASSERT(stream == sealed);
  RC_ASSERT(gcm->join({}, sealed) == part);
}

// The last block GCM's counter can number, and the table's edges on the way there.
RC_GTEST_PROP(SplitGcm, CountersNearTheirEndAreRight, ()) {
  const auto key = random_bytes(Key::kBytes);
  if (native_widths().empty()) return;
  const SplitGcm gcm(**any_width(), std::span<const uint8_t, Key::kBytes>(key));
  Iv iv;
  SystemRandom().fill(iv);
  const uint64_t blocks = *rc::gen::inRange<uint64_t>(1, 1500);
  const uint64_t end = kGcmMessageBytesMax / kBlock;
  const uint64_t first = *rc::gen::element(end - blocks, uint64_t{0x00ffff00} - 10,
                                           uint64_t{0x7ffffff0}, uint64_t{0xff00} - blocks);
  const auto plain = random_bytes(blocks * kBlock);
  std::vector<uint8_t> sealed(plain.size());
  gcm.seal_part(iv, first, plain.data(), sealed.data(), plain.size());
  for (uint64_t i = 0; i < blocks; ++i) {
    GcmBlock stream;
    gcm.keystream(iv, first + i, stream);
    for (size_t byte = 0; byte < kBlock; ++byte) {
      RC_ASSERT((plain[i * kBlock + byte] ^ stream[byte]) == sealed[i * kBlock + byte]);
    }
  }
}

}  // namespace
}  // namespace sealane
