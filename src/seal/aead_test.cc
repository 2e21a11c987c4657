// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does every engine do AES-256-GCM, the same as every other, and refuse what it must?

#include "seal/aead.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "seal/engines_for_tests.h"
#include "seal/hex_for_tests.h"

namespace sealane {
namespace {

class AeadTest : public testing::TestWithParam<const Engine*> {
 protected:
  const Engine& engine() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Engines, AeadTest, testing::ValuesIn(engines_under_test()),
                         [](const auto& tested) { return test_name(*tested.param); });

struct Vector {
  std::string_view key, iv, additional, plaintext, ciphertext, tag;
};

// The GCM specification's AES-256 cases with a 96-bit IV (13 to 16).
constexpr std::string_view kZeroKey =
    "0000000000000000000000000000000000000000000000000000000000000000";
constexpr std::string_view kSpecKey =
    "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
constexpr Vector kSpecification[] = {
    {kZeroKey, "000000000000000000000000", "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
    {kZeroKey, "000000000000000000000000", "", "00000000000000000000000000000000",
     "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"},
    {kSpecKey, "cafebabefacedbaddecaf888", "",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
     "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
     "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad",
     "b094dac5d93471bdec1a502270e3cc6c"},
    {kSpecKey, "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
     "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
     "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
     "76fc6ece0f4e1768cddf8853bb2d551b"},
};

TEST_P(AeadTest, SealsAndOpensTheSpecificationsVectors) {
  for (const Vector& vector : kSpecification) {
    const auto aead = engine().make(*Key::from_bytes(from_hex(vector.key)));
    const auto iv = array_from_hex<kIvBytes>(vector.iv);
    const auto additional = from_hex(vector.additional);
    const auto plaintext = from_hex(vector.plaintext);
    std::vector<uint8_t> out(plaintext.size());
    Tag tag;
    aead->seal(iv, additional, plaintext, out, tag);
    EXPECT_EQ(out, from_hex(vector.ciphertext));
    EXPECT_EQ(tag, array_from_hex<kTagBytes>(vector.tag));

    std::vector<uint8_t> opened(plaintext.size());
    ASSERT_TRUE(aead->open(iv, additional, out, tag, opened).ok());
    EXPECT_EQ(opened, plaintext);
  }
}

Key some_key() {
  std::array<uint8_t, Key::kBytes> bytes;
  std::iota(bytes.begin(), bytes.end(), uint8_t{3});
  return *Key::from_bytes(bytes);
}

// Memory of the length asked for at an odd address, filled from a seed.
class Unaligned {
 public:
  Unaligned(size_t bytes, size_t offset, uint64_t seed = 0)
      : storage_(bytes + 64), offset_(offset) {
    SeededRandom(seed).fill(storage_);
  }
  MutableBytes bytes() { return MutableBytes(storage_).subspan(offset_, storage_.size() - 64); }

 private:
  std::vector<uint8_t> storage_;
  size_t offset_;
};

std::vector<Bytes> split(Bytes whole, const std::vector<size_t>& cuts) {
  std::vector<Bytes> pieces;
  for (const size_t cut : cuts) {
    const size_t count = std::min(cut, whole.size());
    pieces.push_back(whole.first(count));
    whole = whole.subspan(count);
  }
  pieces.push_back(whole);
  return pieces;
}

// Lengths around the edges of blocks and wide code paths, and anything up to 2 MiB.
rc::Gen<size_t> any_length() {
  return rc::gen::weightedOneOf<size_t>({{6, rc::gen::inRange<size_t>(0, 600)},
                                         {3, rc::gen::inRange<size_t>(600, 70'000)},
                                         {1, rc::gen::inRange<size_t>(70'000, 2'097'153)}});
}

RC_GTEST_PROP(AeadProperty, EnginesAgreeOnAnyLengthSplitAlignmentAndAdditionalData, ()) {
  const auto engines = engines_under_test();
  const Engine& sealer = *engines[*rc::gen::inRange<size_t>(0, engines.size())];
  const Engine& opener = *engines[*rc::gen::inRange<size_t>(0, engines.size())];
  const size_t length = *any_length();
  const auto offset = rc::gen::inRange<size_t>(0, 64);
  const auto cuts = rc::gen::container<std::vector<size_t>>(3, rc::gen::inRange<size_t>(0, 5000));

  Unaligned plaintext(length, *offset, *rc::gen::arbitrary<uint64_t>());
  Unaligned additional(*rc::gen::inRange<size_t>(0, 200), *offset, 1);
  Unaligned sealed(length, *offset);
  Unaligned opened(length, *offset);
  Iv iv;
  SeededRandom(*rc::gen::arbitrary<uint64_t>()).fill(iv);

  Tag tag;
  const Key key = some_key();
  sealer.make(key)->seal(iv, additional.bytes(), split(plaintext.bytes(), *cuts), sealed.bytes(),
                         tag);
  const auto aead = opener.make(key);
  RC_ASSERT(
      aead->open(iv, additional.bytes(), split(sealed.bytes(), *cuts), tag, opened.bytes()).ok());
  RC_ASSERT(std::ranges::equal(opened.bytes(), plaintext.bytes()));
}

// Every length, not a sample: tails have edges of their own at each width.
TEST_P(AeadTest, EveryLengthUpTo4KiBIsWhatOpensslMakes) {
  const auto aead = engine().make(some_key());
  const auto judge = openssl_engine().make(some_key());
  Unaligned plaintext(4_KiB, 5, 7);
  const Bytes additional = plaintext.bytes().first(37);
  for (size_t length = 0; length <= 4_KiB; ++length) {
    std::vector<uint8_t> sealed(length), expected(length), opened(length);
    Tag tag, expected_tag;
    const Iv iv{static_cast<uint8_t>(length), static_cast<uint8_t>(length >> 8)};
    const Bytes bytes = plaintext.bytes().first(length);
    const Bytes beside = additional.first(length % 38);
    aead->seal(iv, beside, bytes, sealed, tag);
    judge->seal(iv, beside, bytes, expected, expected_tag);
    ASSERT_EQ(sealed, expected) << length;
    ASSERT_EQ(tag, expected_tag) << length;
    ASSERT_TRUE(aead->open(iv, beside, sealed, tag, opened).ok()) << length;
    ASSERT_TRUE(std::ranges::equal(opened, bytes)) << length;
  }
}

// Long enough for the counter's third byte, for streamed stores, and for tails of each kind.
TEST_P(AeadTest, LongMessagesAreWhatOpensslMakes) {
  const auto aead = engine().make(some_key());
  const auto judge = openssl_engine().make(some_key());
  for (const size_t length : {16_MiB, 16_MiB - 1, 4_MiB + 4_KiB + 19}) {
    Unaligned plaintext(length, length % 2 * 7, length);
    Unaligned sealed(length, length % 2 * 3), expected(length, 0);
    Tag tag, expected_tag;
    aead->seal(Iv{4}, {}, plaintext.bytes(), sealed.bytes(), tag);
    judge->seal(Iv{4}, {}, plaintext.bytes(), expected.bytes(), expected_tag);
    ASSERT_TRUE(std::ranges::equal(sealed.bytes(), expected.bytes())) << length;
    ASSERT_EQ(tag, expected_tag) << length;
    ASSERT_TRUE(aead->open(Iv{4}, {}, sealed.bytes(), tag, expected.bytes()).ok()) << length;
    ASSERT_TRUE(std::ranges::equal(expected.bytes(), plaintext.bytes())) << length;
  }
}

RC_GTEST_PROP(AeadProperty, InPlaceEqualsOutOfPlace, ()) {
  const auto engines = engines_under_test();
  const auto aead = engines[*rc::gen::inRange<size_t>(0, engines.size())]->make(some_key());
  const size_t length = *any_length();
  Unaligned plaintext(length, *rc::gen::inRange<size_t>(0, 64), 5);
  Unaligned apart(length, 0);
  Unaligned in_place(length, *rc::gen::inRange<size_t>(0, 64));
  std::ranges::copy(plaintext.bytes(), in_place.bytes().begin());

  Tag tag;
  Tag tag_in_place;
  aead->seal(Iv{1}, {}, plaintext.bytes(), apart.bytes(), tag);
  aead->seal(Iv{1}, {}, in_place.bytes(), in_place.bytes(), tag_in_place);
  RC_ASSERT(tag == tag_in_place);
  RC_ASSERT(std::ranges::equal(apart.bytes(), in_place.bytes()));
  RC_ASSERT(aead->open(Iv{1}, {}, in_place.bytes(), tag, in_place.bytes()).ok());
  RC_ASSERT(std::ranges::equal(plaintext.bytes(), in_place.bytes()));
}

TEST_P(AeadTest, RefusesEverySingleBitFlipAndWipesTheOutput) {
  const auto aead = engine().make(some_key());
  std::vector<uint8_t> additional(24, 0xad);
  std::vector<uint8_t> sealed(40);
  Iv iv{9};
  Tag tag;
  aead->seal(iv, additional, std::vector<uint8_t>(40, 0x50), sealed, tag);

  const auto expect_refused = [&] {
    std::vector<uint8_t> opened(sealed.size(), 0xee);
    const Status status = aead->open(iv, additional, sealed, tag, opened);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::crypto);
    EXPECT_EQ(opened, std::vector<uint8_t>(sealed.size(), 0));
  };
  for (const MutableBytes part :
       {MutableBytes(iv), MutableBytes(additional), MutableBytes(sealed), MutableBytes(tag)}) {
    for (size_t bit = 0; bit < part.size() * 8; ++bit) {
      part[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
      expect_refused();
      part[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    }
  }
}

TEST_P(AeadTest, WipesInPlaceMemoryToo) {
  const auto aead = engine().make(some_key());
  std::vector<uint8_t> memory(5000, 0x11);
  Tag tag;
  aead->seal(Iv{}, {}, memory, memory, tag);
  tag[15] ^= 0x80;
  EXPECT_FALSE(aead->open(Iv{}, {}, memory, tag, memory).ok());
  EXPECT_EQ(memory, std::vector<uint8_t>(5000, 0));
}

TEST_P(AeadTest, AnotherKeyDoesNotOpen) {
  std::vector<uint8_t> sealed(100);
  std::vector<uint8_t> opened(100);
  Tag tag;
  engine().make(some_key())->seal(Iv{}, {}, std::vector<uint8_t>(100), sealed, tag);
  SeededRandom random(1);
  EXPECT_FALSE(engine().make(Key::random(random))->open(Iv{}, {}, sealed, tag, opened).ok());
}

}  // namespace
}  // namespace sealane
