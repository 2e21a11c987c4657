// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Is a key wiped, unique, and silent?

#include "seal/key.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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
static_assert(!fmt::is_formattable<Key>::value);

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

// Made by the bare system call: no handler of fork() has run. What an engine keeps scheduled for
// the next call is of the parent; with it the child would seal other bytes under the same IV.
TEST(Key, IsOfNoUseInAChildOfABareCloneWhateverTheEngineKeeps) {
  for (const Engine* engine : engines_under_test()) {
    SeededRandom random(1);
    const auto aead = engine->make(Key::random(random));
    const std::vector<uint8_t> plaintext(100, 1);
    std::vector<uint8_t> ciphertext(plaintext.size());
    Tag tag;
    aead->seal(Iv{}, {}, plaintext, ciphertext, tag);
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(STDERR_FILENO);  // what it says there is no failure of the test
      aead->seal(Iv{}, {}, plaintext, ciphertext, tag);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << engine->version();
    aead->seal(Iv{}, {}, plaintext, ciphertext, tag);
  }
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
