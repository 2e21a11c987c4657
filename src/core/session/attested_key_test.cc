// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does evidence that is made once still prove that its sender is at the other end of this session?

#include "core/session/attested_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace sealane {
namespace {

const std::string kEvidence = "a quote";
Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

struct AttestedKeyTest : ::testing::Test {
  SystemRandom kernel;
  AttestedKey key = AttestedKey::random(kernel);
  std::vector<uint8_t> here = std::vector<uint8_t>(32, 1);
  std::vector<uint8_t> elsewhere = std::vector<uint8_t>(32, 2);
};

TEST_F(AttestedKeyTest, IsKnownByItsEvidenceAndByItsSignature) {
  const auto sent = key.present(here, bytes_of(kEvidence));
  EXPECT_EQ(sent.size(), kEvidence.size() + kPresentedExtraBytes);
  const auto read = read_presented(here, sent);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->binding, key.binding());
  EXPECT_TRUE(std::equal(read->evidence.begin(), read->evidence.end(), kEvidence.begin()));
}

TEST_F(AttestedKeyTest, OfAnotherSessionIsRefused) {
  const auto sent = key.present(elsewhere, bytes_of(kEvidence));
  EXPECT_FALSE(read_presented(here, sent).ok());
}

// Somebody who has another's evidence can only sign with his own key, of which it does not speak.
TEST_F(AttestedKeyTest, ThatWasTakenFromAnotherSpeaksForAnotherKey) {
  const AttestedKey thief = AttestedKey::random(kernel);
  const auto sent = thief.present(here, bytes_of(kEvidence));
  const auto read = read_presented(here, sent);
  ASSERT_TRUE(read.ok());
  EXPECT_NE(read->binding, key.binding());
}

TEST_F(AttestedKeyTest, AChangedBitInFrontOfTheEvidenceIsRefusedOrSpeaksForAnother) {
  const auto sent = key.present(here, bytes_of(kEvidence));
  for (size_t bit = 0; bit < 8 * kPresentedExtraBytes; ++bit) {
    auto changed = sent;
    changed[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    EXPECT_FALSE(read_presented(here, changed).ok()) << bit;
  }
}

TEST_F(AttestedKeyTest, WhatIsTooShortIsNoEvidence) {
  const auto sent = key.present(here, bytes_of(kEvidence));
  for (size_t size = 0; size <= kPresentedExtraBytes; ++size) {
    EXPECT_FALSE(read_presented(here, Bytes(sent).first(size)).ok()) << size;
  }
}

}  // namespace
}  // namespace sealane
