// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/page_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"

namespace sealane {
namespace {

const uint64_t kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));

// A mapping for the time of a test.
class Memory {
 public:
  explicit Memory(uint64_t bytes, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int file = -1)
      : bytes_(bytes),
        data_(static_cast<uint8_t*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0))) {
    SEALANE_CHECK(data_ != MAP_FAILED, "mmap in a test");
  }
  ~Memory() { munmap(data_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void populate() { std::fill(data_, data_ + bytes_, uint8_t{1}); }
  uint8_t* at(uint64_t offset) { return data_ + offset; }
  void write(uint64_t offset) { *const_cast<volatile uint8_t*>(at(offset)) = 2; }
  uint8_t read(uint64_t offset) { return *const_cast<volatile uint8_t*>(at(offset)); }
  Range range() { return range(0, bytes_); }
  Range range(uint64_t offset, uint64_t bytes) {
    return {reinterpret_cast<uint64_t>(at(offset)), bytes};
  }

 private:
  uint64_t bytes_;
  uint8_t* data_;
};

// With the quick scan, and with the proof that older kernels need.
class PageGuardTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto opened = PageGuards::open(GetParam());
    if (!opened) GTEST_SKIP() << "no page guards here: " << opened.error().message;
    guards_ = std::make_unique<PageGuards>(*std::move(opened));
  }

  void arm(const Range& range) {
    const Status status = guards_->arm(range);
    ASSERT_TRUE(status) << status.error().message;
  }
  bool written(const Range& range) {
    const auto answer = guards_->written(range);
    SEALANE_CHECK(answer.ok(), "a scan in a test");
    return *answer;
  }
  void expect_refused(const Range& range) {
    const Status status = guards_->arm(range);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::usage) << status.error().message;
  }

  std::unique_ptr<PageGuards> guards_;
};

TEST(Pages, CoverTheRangeAndNoMore) {
  EXPECT_EQ(pages({0, 0}), (Range{0, 0}));
  EXPECT_EQ(pages({kPage, kPage}), (Range{kPage, kPage}));
  EXPECT_EQ(pages({kPage + 5, 1}), (Range{kPage, kPage}));
  EXPECT_EQ(pages({2 * kPage - 1, 2}), (Range{kPage, 2 * kPage}));
  EXPECT_EQ(pages({kPage + 5, 0}).bytes, 0u);
}

TEST(Pages, AreScannedQuicklyByKernelsThatReadEveryEntry) {
  for (const char* release : {"6.15.0", "6.18.44-cloud", "6.100", "7.0.0-rc1", "10.2.1"}) {
    EXPECT_TRUE(scans_quickly(release)) << release;
  }
  for (const char* release :
       {"6.14.11", "6.8.0-60-generic", "5.15.0", "6", "6.", "", "new", "-6.20"}) {
    EXPECT_FALSE(scans_quickly(release)) << release;
  }
}

TEST_P(PageGuardTest, NotWrittenStaysClean) {
  Memory memory(16 * kPage);
  memory.populate();
  arm(memory.range());
  EXPECT_FALSE(written(memory.range()));
  for (uint64_t offset = 0; offset < 16 * kPage; offset += kPage) memory.read(offset);
  EXPECT_FALSE(written(memory.range()));
}

TEST_P(PageGuardTest, AWriteIsSeenOnItsPageOnlyAndAskingDoesNotForgetIt) {
  Memory memory(16 * kPage);
  memory.populate();
  arm(memory.range());
  memory.write(7 * kPage + 11);
  EXPECT_TRUE(written(memory.range()));
  EXPECT_TRUE(written(memory.range()));
  EXPECT_TRUE(written(memory.range(7 * kPage, kPage)));
  EXPECT_FALSE(written(memory.range(0, 7 * kPage)));
  EXPECT_FALSE(written(memory.range(8 * kPage, 8 * kPage)));
}

TEST_P(PageGuardTest, WritesOfTheSameValueCount) {
  Memory memory(kPage);
  memory.write(0);
  arm(memory.range());
  memory.write(0);
  EXPECT_TRUE(written(memory.range()));
}

TEST_P(PageGuardTest, AWriteByAnotherThreadIsSeen) {
  Memory memory(4 * kPage);
  memory.populate();
  arm(memory.range());
  std::thread([&] { memory.write(3 * kPage); }).join();
  EXPECT_TRUE(written(memory.range()));
}

TEST_P(PageGuardTest, AReadFromAPipeIntoTheMemoryWorksAndIsSeen) {
  Memory memory(4 * kPage);
  memory.populate();
  arm(memory.range());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "bytes", 5), 5);
  EXPECT_EQ(read(ends[0], memory.at(2 * kPage), 5), 5);
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(*memory.at(2 * kPage), 'b');
  EXPECT_TRUE(written(memory.range(2 * kPage, 5)));
  EXPECT_FALSE(written(memory.range(0, 2 * kPage)));
}

TEST_P(PageGuardTest, AWriteByAnotherProcessIsSeen) {
  Memory memory(2 * kPage);
  memory.populate();
  arm(memory.range());
  char bytes[] = "bytes";
  const iovec from{bytes, 5};
  const iovec to{memory.at(kPage), 5};
  if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) != 5) GTEST_SKIP() << "not allowed here";
  EXPECT_TRUE(written(memory.range()));
}

TEST_P(PageGuardTest, PagesNeverTouchedAreGuardedToo) {
  Memory memory(8 * kPage);
  arm(memory.range());
  EXPECT_FALSE(written(memory.range()));
  EXPECT_EQ(memory.read(3 * kPage), 0);
  EXPECT_FALSE(written(memory.range()));
  memory.write(3 * kPage);  // read before
  EXPECT_TRUE(written(memory.range(3 * kPage, kPage)));
  memory.write(5 * kPage);  // not read before
  EXPECT_TRUE(written(memory.range(5 * kPage, kPage)));
  EXPECT_FALSE(written(memory.range(6 * kPage, 2 * kPage)));
}

TEST_P(PageGuardTest, UnalignedRangesCoverTheirEdges) {
  Memory memory(4 * kPage);
  memory.populate();
  const Range inner = memory.range(kPage + 100, kPage + 1);  // pages 1 and 2
  arm(inner);
  EXPECT_FALSE(written(inner));
  memory.write(0);
  memory.write(3 * kPage);
  EXPECT_FALSE(written(inner)) << "other pages do not matter";
  memory.write(kPage + 100);
  EXPECT_TRUE(written(inner));
  arm(inner);
  memory.write(2 * kPage + 100);
  EXPECT_TRUE(written(inner));
}

TEST_P(PageGuardTest, ArmingAgainForgets) {
  Memory memory(4 * kPage);
  memory.populate();
  for (int round = 0; round < 3; ++round) {
    arm(memory.range());
    EXPECT_FALSE(written(memory.range()));
    memory.write(kPage);
    EXPECT_TRUE(written(memory.range()));
  }
}

TEST_P(PageGuardTest, UnguardedMemoryCountsAsWritten) {
  Memory memory(4 * kPage);
  memory.populate();
  EXPECT_TRUE(written(memory.range()));
  arm(memory.range());
  const Status status = guards_->disarm(memory.range());
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_TRUE(written(memory.range()));
}

TEST_P(PageGuardTest, AnEmptyRangeIsNeverWritten) {
  arm({});
  EXPECT_FALSE(written({}));
  EXPECT_TRUE(guards_->disarm({}));
}

TEST_P(PageGuardTest, UnmappedMemoryCountsAsWritten) {
  Memory memory(4 * kPage);
  memory.populate();
  arm(memory.range());
  munmap(memory.at(kPage), kPage);
  EXPECT_TRUE(written(memory.range()));
  EXPECT_TRUE(written(memory.range(kPage, kPage)));
}

TEST_P(PageGuardTest, MemoryMappedAnewCountsAsWritten) {
  Memory memory(4 * kPage);
  memory.populate();
  arm(memory.range());
  ASSERT_NE(mmap(memory.at(kPage), kPage, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  EXPECT_TRUE(written(memory.range()));
}

TEST_P(PageGuardTest, DiscardedMemoryCountsAsWritten) {
  Memory memory(8_MiB);  // holds whole page tables, which the kernel frees as one
  memory.populate();
  arm(memory.range());
  ASSERT_EQ(madvise(memory.at(kPage), 6_MiB, MADV_DONTNEED), 0);
  EXPECT_TRUE(written(memory.range(kPage, 6_MiB)));
  EXPECT_TRUE(written(memory.range(3_MiB, kPage)));
  memory.read(3_MiB);
  EXPECT_TRUE(written(memory.range(3_MiB, kPage)));
  EXPECT_FALSE(written(memory.range(0, kPage)));
}

// Each page table on its own, and what reaches into two of them.
TEST_P(PageGuardTest, ALostPageTableIsNoticedWhereverItIs) {
  constexpr uint64_t kTable = 2_MiB;
  for (const uint64_t lost : {0, 1, 2}) {
    Memory memory(4 * kTable);
    memory.populate();
    const uint64_t first = kTable - memory.range().address % kTable;  // begins a table
    const Range all = memory.range(first, 3 * kTable);
    arm(all);
    EXPECT_FALSE(written(all));
    ASSERT_EQ(madvise(memory.at(first + lost * kTable), kTable, MADV_DONTNEED), 0);
    for (const uint64_t table : {0, 1, 2}) {
      EXPECT_EQ(written(memory.range(first + table * kTable, kTable)), table == lost);
    }
    EXPECT_TRUE(written(all));
    Memory edges(4 * kTable);
    edges.populate();
    const uint64_t edge = 2 * kTable - edges.range().address % kTable;
    const Range both = edges.range(edge - kPage, 2 * kPage);
    arm(edges.range());
    ASSERT_EQ(madvise(edges.at(edge), kTable, MADV_DONTNEED), 0);
    EXPECT_TRUE(written(both));
    EXPECT_FALSE(written(edges.range(edge - kPage, kPage)));
  }
}

TEST_P(PageGuardTest, MovedMemoryIsWrittenAtBothEnds) {
  Memory memory(4 * kPage);
  Memory target(4 * kPage);
  memory.populate();
  target.populate();
  arm(memory.range());
  arm(target.range());
  ASSERT_NE(mremap(memory.at(0), 4 * kPage, 4 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, target.at(0)),
            MAP_FAILED);
  EXPECT_TRUE(written(memory.range()));
  EXPECT_TRUE(written(target.range()));
}

TEST_P(PageGuardTest, AForkDoesNotDisturb) {
  Memory memory(4 * kPage);
  memory.populate();
  arm(memory.range());
  const pid_t child = fork();
  if (child == 0) {
    memory.write(0);  // its own copy
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(written(memory.range()));
  memory.write(0);
  EXPECT_TRUE(written(memory.range()));
}

TEST_P(PageGuardTest, HugePagesAreGuardedPageByPage) {
  Memory memory(8_MiB);
  madvise(memory.at(0), 8_MiB, MADV_HUGEPAGE);  // a wish; the test holds either way
  memory.populate();
  arm(memory.range());
  EXPECT_FALSE(written(memory.range()));
  memory.write(5_MiB);
  EXPECT_TRUE(written(memory.range()));
  EXPECT_TRUE(written(memory.range(5_MiB, kPage)));
  EXPECT_FALSE(written(memory.range(0, 5_MiB)));
  EXPECT_FALSE(written(memory.range(5_MiB + kPage, 1_MiB)));
}

TEST_P(PageGuardTest, LockedMemoryIsGuarded) {
  Memory memory(4 * kPage);
  if (mlock(memory.at(0), 4 * kPage) != 0) GTEST_SKIP() << "cannot lock four pages here";
  arm(memory.range());
  EXPECT_FALSE(written(memory.range()));
  memory.write(kPage);
  EXPECT_TRUE(written(memory.range()));
}

TEST_P(PageGuardTest, RefusesWhatCanBeWrittenThroughAnotherView) {
  Memory shared(2 * kPage, MAP_SHARED | MAP_ANONYMOUS);
  expect_refused(shared.range());

  char name[] = "/tmp/page_guard_test.XXXXXX";
  const Descriptor file(mkostemp(name, O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  unlink(name);
  ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(2 * kPage)), 0);
  Memory shared_file(2 * kPage, MAP_SHARED, file.get());
  expect_refused(shared_file.range());
  Memory private_file(2 * kPage, MAP_PRIVATE, file.get());
  expect_refused(private_file.range());
  private_file.populate();  // even where all pages are its own by now: new ones would not be
  expect_refused(private_file.range());

  const Descriptor unnamed(memfd_create("page_guard_test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(unnamed.get(), static_cast<off_t>(2 * kPage)), 0);
  Memory memfd(2 * kPage, MAP_SHARED, unnamed.get());
  expect_refused(memfd.range());
}

TEST_P(PageGuardTest, RefusesARangeWithAHole) {
  Memory memory(4 * kPage);
  munmap(memory.at(2 * kPage), kPage);
  expect_refused(memory.range());
}

// Any set of written pages against any range: the answer is whether they meet.
TEST_P(PageGuardTest, AnswersForEverySetOfPages) {
  constexpr uint64_t kCount = 64;
  const auto some_pages =
      rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, kCount));
  const bool holds = rc::check([&] {
    Memory memory(kCount * kPage);
    if (*rc::gen::arbitrary<bool>()) memory.populate();
    for (const uint64_t page : *some_pages)
      memory.write(page * kPage);  // the others: perhaps never touched
    RC_ASSERT(guards_->arm(memory.range()).ok());
    std::vector<bool> dirty(kCount, false);
    for (const uint64_t page : *some_pages) {
      memory.write(page * kPage);
      dirty[page] = true;
    }
    if (*rc::gen::arbitrary<bool>()) {  // a page is gone, and perhaps another one is there
      const auto gone = *rc::gen::inRange<uint64_t>(0, kCount);
      munmap(memory.at(gone * kPage), kPage);
      if (*rc::gen::arbitrary<bool>()) {
        mmap(memory.at(gone * kPage), kPage, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);
      }
      dirty[gone] = true;
    }
    const auto offset = *rc::gen::inRange<uint64_t>(0, kCount * kPage);
    const auto bytes = *rc::gen::inRange<uint64_t>(1, kCount * kPage - offset + 1);
    bool expected = false;
    for (uint64_t page = offset / kPage; page <= (offset + bytes - 1) / kPage; ++page) {
      expected = expected || dirty[page];
    }
    RC_ASSERT(*guards_->written(memory.range(offset, bytes)) == expected);
  });
  EXPECT_TRUE(holds);
}

INSTANTIATE_TEST_SUITE_P(Kernel, PageGuardTest, testing::Values("6.15", "6.7"),
                         [](const auto& release) {
                           return scans_quickly(release.param) ? "Quick" : "Proving";
                         });

}  // namespace
}  // namespace sealane
