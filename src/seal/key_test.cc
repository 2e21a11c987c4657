// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Is a key wiped, unique, and silent?

#include "seal/key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <type_traits>
#include <vector>

#include "seal/engines_for_tests.h"

namespace sealane {
namespace {

template <typename T>
concept Printable = requires(std::ostream& out, const T& value) {
  out << value;
};

static_assert(!std::is_copy_constructible_v<Key> && !std::is_copy_assignable_v<Key>);
static_assert(!Printable<Key>);

bool all_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

TEST(Key, IsGoneWhenMovedFrom) {
  SeededRandom random(1);
  Key first = Key::random(random);
  Key second = std::move(first);
  EXPECT_FALSE(first.alive());  // NOLINT(bugprone-use-after-move): the point of the test
  EXPECT_FALSE(all_zero(second.secret()));
  Key third = Key::random(random);
  const uint8_t* const replaced = third.secret().data();
  third = std::move(second);
  EXPECT_FALSE(second.alive());  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(all_zero({replaced, Key::kBytes}));
}

TEST(Key, IsWipedWhenItsLastHolderEnds) {
  SeededRandom random(1);
  auto key = std::make_unique<Key>(Key::random(random));
  auto other = std::make_unique<Key>(key->duplicate());
  const Bytes memory = other->secret();
  EXPECT_EQ(memory.data(), key->secret().data()) << "there is one copy";
  key.reset();
  EXPECT_FALSE(all_zero(memory));
  other.reset();
  EXPECT_TRUE(all_zero(memory));
}

TEST(Key, NeedsExactly32Bytes) {
  EXPECT_TRUE(Key::from_bytes(std::vector<uint8_t>(32)).ok());
  for (const size_t size : {0, 16, 31, 33}) {
    const auto key = Key::from_bytes(std::vector<uint8_t>(size));
    ASSERT_FALSE(key.ok());
    EXPECT_EQ(key.error().kind, ErrorKind::usage);
  }
}

}  // namespace
}  // namespace sealane
