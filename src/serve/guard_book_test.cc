// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does nobody trust pages where somebody could write past the page tables (os/unseen_writers.h)?

#include "serve/guard_book.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "os/page_guard.h"
#include "os/unseen_writers.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kBytes = 1 << 16;
using State = GuardBook::Entry::State;

class UnseenWritersGuard : public testing::Test {
 protected:
  UnseenWritersGuard()
      : memory_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(memory_, MAP_FAILED);
  }
  ~UnseenWritersGuard() override {
    munmap(memory_, kBytes);
    for (const int end : ends_) close(end);
  }
  // A pipe in packet mode has the flag that a file for direct I/O has.
  void open_direct_file() { ASSERT_EQ(pipe2(ends_, O_DIRECT), 0); }
  Range range() const { return {reinterpret_cast<uint64_t>(memory_), kBytes}; }

  void* const memory_;

 private:
  int ends_[2] = {-1, -1};
};

// What the others say is said of memory that pages would guard.
TEST_F(UnseenWritersGuard, WhereThereAreNonePagesGuard) {
  if (!PageGuards::open().ok()) GTEST_SKIP() << "the kernel guards no pages here";
  if (UnseenWriters().possible()) GTEST_SKIP() << "somebody could write unseen here";
  std::memset(memory_, 1, kBytes);
  GuardBook book(true);
  const auto guard = book.add(range());
  book.arm(*guard, true);
  EXPECT_EQ(guard->state.load(), State::pages);
}

TEST_F(UnseenWritersGuard, WhereThereAreSomeDigestsGuard) {
  open_direct_file();
  GuardBook book(true);
  const auto guard = book.add(range());
  book.arm(*guard, true);
  EXPECT_EQ(guard->state.load(), State::digest);
}

TEST_F(UnseenWritersGuard, TheyAreLookedForAgainAfterAGuardIsArmed) {
  std::memset(memory_, 1, kBytes);
  GuardBook book(true);
  book.arm(*book.add({range().address, 4096}), true);  // an answer that is soon too old
  open_direct_file();
  const auto guard = book.add(range());
  book.arm(*guard, true);
  if (guard->state.load() == State::pages) {
    EXPECT_TRUE(book.written(*guard, range()));
  }
}

// Memory that others may have given away before it came to us.
TEST_F(UnseenWritersGuard, OnlyMemoryOfOursIsGuardedByPages) {
  GuardBook book(true);
  const auto guard = book.add(range());
  book.arm(*guard, false);
  EXPECT_EQ(guard->state.load(), State::digest);
}

}  // namespace
}  // namespace sealane::serve
