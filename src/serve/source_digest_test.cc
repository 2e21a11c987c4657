// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does a digest tell every change of a byte, and nothing else?

#include "serve/source_digest.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace sealane::serve {
namespace {

std::vector<uint8_t> some_bytes(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

TEST(SourceDigest, TellsEveryFlippedBit) {
  const SourceDigest digest;
  for (const size_t count : {size_t{1}, size_t{31}, size_t{4096}, size_t{4097}, size_t{9000}}) {
    std::vector<uint8_t> bytes = some_bytes(count, 1);
    const auto before = digest.of(bytes.data(), count);
    EXPECT_EQ(digest.of(bytes.data(), count), before);
    for (size_t bit = 0; bit<8 * count; bit += count> 100 ? 7 : 1) {
      bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      ASSERT_NE(digest.of(bytes.data(), count), before) << bit << " of " << count;
      bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    }
  }
}

TEST(SourceDigest, TellsLengthsAndPlacesApart) {
  const SourceDigest digest;
  const std::vector<uint8_t> zeros(3 * SourceDigest::kBlockBytes);
  std::vector<SourceDigest::Value> seen;
  for (size_t count = 1; count <= zeros.size(); count += 97) {
    seen.push_back(digest.of(zeros.data(), count));
  }
  for (size_t at = 0; at < zeros.size(); at += 8) {  // the same word somewhere else
    std::vector<uint8_t> bytes = zeros;
    bytes[at] = 1;
    seen.push_back(digest.of(bytes.data(), bytes.size()));
  }
  std::sort(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.sums < b.sums; });
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

TEST(SourceDigest, IsTheSameInPiecesAndWhereverTheBytesLie) {
  const SourceDigest digest;
  const size_t count = 5 * SourceDigest::kBlockBytes + 1234;
  const std::vector<uint8_t> bytes = some_bytes(count, 2);
  const auto whole = digest.of(bytes.data(), count);
  SourceDigest::Value pieces;
  digest.add(pieces, bytes.data(), 2 * SourceDigest::kBlockBytes);
  digest.add(pieces, bytes.data() + 2 * SourceDigest::kBlockBytes,
             count - 2 * SourceDigest::kBlockBytes);
  EXPECT_EQ(pieces, whole);
  std::vector<uint8_t> elsewhere(count + 1);
  std::copy(bytes.begin(), bytes.end(), elsewhere.begin() + 1);
  EXPECT_EQ(digest.of(elsewhere.data() + 1, count), whole);
}

TEST(SourceDigest, HasAKeyOfItsOwn) {
  const std::vector<uint8_t> bytes = some_bytes(100, 3);
  EXPECT_NE(SourceDigest().of(bytes.data(), 100), SourceDigest().of(bytes.data(), 100));
}

}  // namespace
}  // namespace sealane::serve
