// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does whoever touches a trapped page, by whatever way, get the bytes that are delivered and no
// others?

#include "live/read_trap.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>

#include "base/check.h"
#include "live/page_guard.h"

namespace sealane {
namespace {

const uint64_t kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
constexpr uint64_t kPages = 8;
constexpr int kLongEnough = 20'000;  // ms: a test that waits so long has failed

class Memory {
 public:
  explicit Memory(uint8_t value)
      : data_(static_cast<uint8_t*>(
            mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    SEALANE_CHECK(data_ != MAP_FAILED, "mmap in a test");
    std::fill_n(data_, bytes(), value);
  }
  ~Memory() { munmap(data_, bytes()); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  static uint64_t bytes() { return kPages * kPage; }
  uint8_t* data() { return data_; }
  uint8_t read(uint64_t at) { return *const_cast<volatile uint8_t*>(data_ + at); }
  void write(uint64_t at, uint8_t value) { *const_cast<volatile uint8_t*>(data_ + at) = value; }
  Range range() { return {reinterpret_cast<uint64_t>(data_), bytes()}; }
  bool is(uint8_t value) {
    return std::all_of(data_, data_ + bytes(), [&](uint8_t byte) { return byte == value; });
  }

 private:
  uint8_t* data_;
};

class ReadTrapTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = ReadTrap::open();
    if (!opened) GTEST_SKIP() << "reads cannot be trapped here: " << opened.error().message;
    trap_ = std::make_unique<ReadTrap>(*std::move(opened));
    ASSERT_TRUE(trap_->arm(memory_.range(), keep_.data()));
  }

  // Runs `touch` on a thread of its own and delivers the bytes when it waits for them.
  void deliver_to(const std::function<void()>& touch) {
    std::thread program(touch);
    const auto page = trap_->wait_for_access(kLongEnough);
    EXPECT_TRUE(page && memory_.range().contains({*page, 1})) << "nobody had to wait";
    EXPECT_TRUE(trap_->deliver(memory_.range(), bytes_.data()));
    program.join();
  }

  std::unique_ptr<ReadTrap> trap_;
  Memory memory_{1};
  Memory bytes_{2};
  Memory keep_{3};
};

TEST(PagesWithin, AreTheWholeOnes) {
  EXPECT_EQ(pages_within({kPage, kPage}), (Range{kPage, kPage}));
  EXPECT_EQ(pages_within({1, 3 * kPage}), (Range{kPage, 2 * kPage}));
  EXPECT_EQ(pages_within({kPage - 1, kPage + 2}), (Range{kPage, kPage}));
  EXPECT_EQ(pages_within({1, 2 * kPage - 2}).bytes, 0u);
  EXPECT_EQ(pages_within({5, 0}).bytes, 0u);
}

TEST_F(ReadTrapTest, AReaderWaitsForTheBytes) {
  uint8_t seen = 0;
  deliver_to([&] { seen = memory_.read(3 * kPage + 5); });
  EXPECT_EQ(seen, 2);
  EXPECT_TRUE(memory_.is(2));
}

TEST_F(ReadTrapTest, AWriterWaitsAndItsWriteStays) {
  deliver_to([&] { memory_.write(7, 9); });
  EXPECT_EQ(memory_.read(7), 9);
  EXPECT_EQ(memory_.read(8), 2);
}

TEST_F(ReadTrapTest, SystemCallsWaitToo) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  uint8_t got[2] = {};
  deliver_to([&] {
    EXPECT_EQ(write(ends[1], memory_.data() + kPage - 1, 2), 2);
    EXPECT_EQ(read(ends[0], got, 2), 2);
  });
  EXPECT_EQ(got[0], 2);
  EXPECT_EQ(got[1], 2);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ReadTrapTest, ReadsByTheKernelForAnotherProcessWaitToo) {
  uint8_t got = 0;
  deliver_to([&] {
    const iovec here{&got, 1};
    const iovec there{memory_.data() + 2 * kPage, 1};
    EXPECT_EQ(process_vm_readv(getpid(), &here, 1, &there, 1, 0), 1);
  });
  EXPECT_EQ(got, 2);
}

TEST_F(ReadTrapTest, BytesMayComeInPartsAndAsZeros) {
  const uint64_t half = Memory::bytes() / 2;
  const Range first{memory_.range().address, half};
  ASSERT_TRUE(trap_->deliver(first, bytes_.data()));
  ASSERT_TRUE(trap_->deliver_zeros({first.end(), half}));
  EXPECT_EQ(memory_.read(half - 1), 2);
  EXPECT_EQ(memory_.read(half), 0);
  memory_.write(half, 4);
  EXPECT_EQ(memory_.read(half), 4);
  EXPECT_EQ(memory_.read(half + kPage), 0) << "zeros are a page's own";
}

TEST_F(ReadTrapTest, WithoutHolesInTheSource) {
  ASSERT_EQ(madvise(bytes_.data() + kPage, kPage, MADV_DONTNEED), 0);
  ASSERT_TRUE(trap_->deliver(memory_.range(), bytes_.data()));
  EXPECT_EQ(memory_.read(0), 2);
  EXPECT_EQ(memory_.read(kPage), 0) << "a page that was never touched is zeros";
  EXPECT_EQ(memory_.read(2 * kPage), 2);
}

TEST_F(ReadTrapTest, PagesThatLayThereAreKeptWhereTheyCanMove) {
  EXPECT_TRUE(keep_.is(trap_->moves() ? 1 : 3));
  ASSERT_TRUE(trap_->deliver_zeros(memory_.range()));
}

TEST_F(ReadTrapTest, AfterwardsItIsOrdinaryMemory) {
  ASSERT_TRUE(trap_->deliver(memory_.range(), bytes_.data()));
  ASSERT_TRUE(trap_->disarm(memory_.range()));
  ASSERT_EQ(madvise(memory_.data(), Memory::bytes(), MADV_DONTNEED), 0);
  EXPECT_TRUE(memory_.is(0)) << "nobody is asked for pages any more";
  ASSERT_TRUE(trap_->arm(memory_.range(), keep_.data())) << "and it can be trapped again";
  deliver_to([&] { EXPECT_NE(memory_.read(0), 1); });
}

TEST_F(ReadTrapTest, WhoIsWokenAsksAgain) {
  std::thread program([&] { EXPECT_EQ(memory_.read(0), 2); });
  ASSERT_TRUE(trap_->wait_for_access(kLongEnough));
  trap_->wake(memory_.range());
  ASSERT_TRUE(trap_->wait_for_access(kLongEnough));
  ASSERT_TRUE(trap_->deliver(memory_.range(), bytes_.data()));
  program.join();
}

TEST_F(ReadTrapTest, RangesMayBeArmedInOtherPiecesTheNextTime) {
  const Range part{memory_.range().address + kPage, 3 * kPage};
  for (const uint8_t value : {4, 5, 6}) {
    ASSERT_TRUE(trap_->deliver(memory_.range(), bytes_.data()));
    ASSERT_TRUE(trap_->disarm(memory_.range()));
    ASSERT_TRUE(trap_->arm(part, keep_.data()));
    ASSERT_TRUE(trap_->deliver_zeros(part));
    ASSERT_TRUE(trap_->disarm(part));
    EXPECT_EQ(memory_.read(kPage), 0);
    std::fill_n(bytes_.data(), Memory::bytes(), value);
    ASSERT_TRUE(trap_->arm(memory_.range(), keep_.data()));
    ASSERT_TRUE(trap_->deliver(memory_.range(), bytes_.data()));
    EXPECT_TRUE(memory_.is(value));
    ASSERT_TRUE(trap_->disarm(memory_.range()));
    ASSERT_TRUE(trap_->arm(memory_.range(), bytes_.data())) << "what was kept is in pieces too";
    ASSERT_TRUE(trap_->deliver(memory_.range(), keep_.data()));
    ASSERT_TRUE(trap_->disarm(memory_.range()));
    ASSERT_TRUE(trap_->arm(memory_.range(), keep_.data()));
  }
  ASSERT_TRUE(trap_->deliver_zeros(memory_.range()));
}

TEST_F(ReadTrapTest, LockedMemoryIsRefused) {
  Memory locked(5);
  // Not by the library's call: sanitizers have one of their own, which does nothing.
  if (syscall(SYS_mlock, locked.data(), Memory::bytes()) != 0) {
    GTEST_SKIP() << "no memory can be locked";
  }
  EXPECT_FALSE(trap_->arm(locked.range(), keep_.data()));
  EXPECT_TRUE(locked.is(5));
  ASSERT_TRUE(trap_->deliver_zeros(memory_.range()));
}

TEST_F(ReadTrapTest, GuardedMemoryIsRefused) {
  const auto guards = PageGuards::open();
  if (!guards) GTEST_SKIP() << "no page guards here: " << guards.error().message;
  Memory guarded(5);
  ASSERT_TRUE(guards->arm(guarded.range()));
  EXPECT_FALSE(trap_->arm(guarded.range(), keep_.data()));
  EXPECT_TRUE(guarded.is(5)) << "and is as it was";
  ASSERT_TRUE(guards->disarm(guarded.range()));
  EXPECT_TRUE(trap_->arm(guarded.range(), bytes_.data()));
  EXPECT_FALSE(guards->arm(guarded.range())) << "nor the other way round";
  ASSERT_TRUE(trap_->deliver_zeros(guarded.range()));
  ASSERT_TRUE(trap_->disarm(guarded.range()));
  EXPECT_TRUE(guards->arm(guarded.range()));
}

}  // namespace
}  // namespace sealane
