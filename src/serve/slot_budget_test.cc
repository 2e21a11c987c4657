// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Do processes share the memory for slots, and is what one had free again when it dies?

#include "serve/slot_budget.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "serve/memory.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kUnit = SlotBudget::kUnitBytes;

class SlotBudgetTest : public testing::Test {
 protected:
  SlotBudgetTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~SlotBudgetTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_ = std::filesystem::temp_directory_path() / "sealane-budget-XXXXXX";
  const CpuTopology cores_;
};

TEST_F(SlotBudgetTest, AProcessHasItsOwnBound) {
  SlotBudget mine(folder_, cores_, 100 * kUnit, 3 * kUnit);
  EXPECT_TRUE(mine.take(2 * kUnit));
  EXPECT_FALSE(mine.take(kUnit + 1));
  EXPECT_TRUE(mine.take(kUnit));
  mine.give(2 * kUnit);
  EXPECT_TRUE(mine.take(2 * kUnit));
  EXPECT_EQ(mine.bytes(), 3 * kUnit);
}

TEST_F(SlotBudgetTest, AllHaveOneTogether) {
  SlotBudget one(folder_, cores_, 4 * kUnit, 4 * kUnit);
  SlotBudget other(folder_, cores_, 4 * kUnit, 4 * kUnit);
  CpuTopology far;
  far.node = 1;
  SlotBudget elsewhere(folder_, far, 4 * kUnit, 4 * kUnit);
  EXPECT_TRUE(one.take(2 * kUnit + 1)) << "three units";
  EXPECT_FALSE(other.take(2 * kUnit));
  EXPECT_TRUE(elsewhere.take(4 * kUnit));
  EXPECT_TRUE(one.take(kUnit - 1)) << "it has them already";
  one.give(3 * kUnit);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));  // it was refused just now
  EXPECT_TRUE(other.take(2 * kUnit));
  EXPECT_FALSE(one.take(3 * kUnit));
  other.give(2 * kUnit);
  EXPECT_EQ(other.bytes(), 0u);
}

TEST_F(SlotBudgetTest, WhatADeadProcessHadIsFree) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    SlotBudget theirs(folder_, cores_, 4 * kUnit, 4 * kUnit);
    const char took = theirs.take(4 * kUnit) ? 1 : 0;
    static_cast<void>(!::write(ready[1], &took, 1));
    pause();
    _exit(0);
  }
  char took = 0;
  ASSERT_EQ(read(ready[0], &took, 1), 1);
  EXPECT_EQ(took, 1);
  {
    SlotBudget mine(folder_, cores_, 4 * kUnit, 4 * kUnit);
    EXPECT_FALSE(mine.take(1));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  SlotBudget mine(folder_, cores_, 4 * kUnit, 4 * kUnit);
  EXPECT_TRUE(mine.take(4 * kUnit));
  close(ready[0]);
  close(ready[1]);
}

TEST_F(SlotBudgetTest, WithNothingToShareByOnlyTheOwnBoundHolds) {
  SlotBudget mine(folder_ + "/missing", cores_, 4 * kUnit, 2 * kUnit);
  EXPECT_TRUE(mine.take(2 * kUnit));
  EXPECT_FALSE(mine.take(1));
}

// What is not taken makes room for what is, whatever its size.
TEST_F(SlotBudgetTest, StagingStaysWithinIt) {
  SlotBudget budget(folder_, cores_, 2 * kUnit, 2 * kUnit);
  Staging one(64_MiB, Staging::Locking::tried, &budget);
  Staging other(64_MiB, Staging::Locking::tried, &budget);
  void* const half = one.take(kUnit);
  void* const rest = other.take(kUnit);
  ASSERT_TRUE(half != nullptr && rest != nullptr);
  EXPECT_EQ(one.take(64_KiB), nullptr);
  one.give(half);
  void* const small = one.take(64_KiB);
  EXPECT_NE(small, nullptr);
  EXPECT_EQ(budget.bytes(), kUnit + 2_MiB) << "a huge page of small ones";
  one.give(small);
  other.give(rest);
  one.close();
  other.close();
  EXPECT_EQ(budget.bytes(), 0u);
}

// Pieces of a huge page come and go alone; the page goes when the last one has.
TEST_F(SlotBudgetTest, SmallPiecesShareAHugePage) {
  SlotBudget budget(folder_, cores_, 4 * kUnit, 4 * kUnit);
  Staging staging(16_MiB, Staging::Locking::tried, &budget);
  std::vector<void*> pieces;
  for (int i = 0; i < 16; ++i) pieces.push_back(staging.take(1_MiB));
  std::set<void*> different(pieces.begin(), pieces.end());
  different.erase(nullptr);
  EXPECT_EQ(different.size(), 16u);
  EXPECT_EQ(staging.take(1), nullptr);
  staging.give(pieces[3]);
  EXPECT_EQ(staging.take(1), nullptr) << "its neighbour is in use";
  EXPECT_EQ(staging.take(700'000), pieces[3]);
  for (void* piece : pieces) staging.give(piece);
  EXPECT_NE(staging.take(1), nullptr);
  staging.close();
  EXPECT_EQ(budget.bytes(), 2_MiB) << "what is taken";
}

TEST_F(SlotBudgetTest, MemoryIsPutWhereTheWorkersAre) {
  void* const memory =
      mmap(nullptr, kUnit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  CpuTopology several;
  several.nodes = 2;  // as far as it knows
  SlotBudget(folder_, several, kUnit, kUnit).place(memory, kUnit);
  int mode = -1;
  unsigned long nodes[16] = {};
  if (syscall(SYS_get_mempolicy, &mode, nodes, 1024, memory, MPOL_F_ADDR) != 0) {
    munmap(memory, kUnit);
    GTEST_SKIP() << "this kernel does not tell";
  }
  EXPECT_EQ(mode, MPOL_PREFERRED);
  EXPECT_EQ(nodes[0], 1u);
  munmap(memory, kUnit);
}

}  // namespace
}  // namespace sealane::serve
