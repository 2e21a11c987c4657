// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Who opens a copy that was put off, and is nobody left waiting for one that nobody opens?

#include "live/serve/read_book.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace sealane::serve {
namespace {

using Answer = ReadBook::Answer;

// A destination at 1000 whose whole "pages" are 1100..1900; its bytes come to 5000.
ReadId add(ReadBook& book, uint64_t at = 1000, uint64_t memory = 5000) {
  return book.add({at, 1000}, {at + 100, 800}, memory);
}

TEST(ReadBook, OnlyMessagesThatTouchNoEdgeArePutOff) {
  ReadBook book;
  const ReadId id = add(book);
  EXPECT_TRUE(book.find_filling({5100, 800}).may_wait);
  EXPECT_TRUE(book.find_filling({5899, 1}).may_wait);
  EXPECT_FALSE(book.find_filling({5099, 10}).may_wait) << "the head";
  EXPECT_EQ(book.find_filling({5099, 10}).id, id);
  EXPECT_FALSE(book.find_filling({5890, 11}).may_wait) << "the tail";
  EXPECT_EQ(book.find_filling({1100, 800}).id, kNoRead) << "not where the driver was to write";
  EXPECT_EQ(book.find_filling({7000, 1}).id, kNoRead);
  ASSERT_TRUE(book.land(id));
  EXPECT_EQ(book.find_filling({5100, 800}).id, kNoRead) << "the driver said that it was done";
}

TEST(ReadBook, ACopyIsOpenedOnceByWhoeverComesFirst) {
  ReadBook book;
  const ReadId id = add(book);
  EXPECT_EQ(book.touch(1500).answer, Answer::gone) << "not trapped yet";
  ASSERT_TRUE(book.land(id));
  EXPECT_FALSE(book.trap(id));
  const auto first = book.touch(1500);
  EXPECT_EQ(first.answer, Answer::open);
  EXPECT_EQ(first.id, id);
  EXPECT_EQ(book.touch(1100).answer, Answer::wait);
  EXPECT_FALSE(book.claim(id));
  EXPECT_EQ(book.put_off({1000, 1}), std::vector<ReadId>{id});
  book.remove(id);
  EXPECT_EQ(book.touch(1500).answer, Answer::gone);
  EXPECT_TRUE(book.put_off({0, UINT64_MAX}).empty());
}

TEST(ReadBook, WhoTouchesItBeforeItCanBeOpenedMustAskAgain) {
  ReadBook book;
  const ReadId id = add(book);
  ASSERT_TRUE(book.land(id));
  EXPECT_EQ(book.touch(1500).answer, Answer::wait);
  EXPECT_TRUE(book.trap(id)) << "else nobody would open it for him";
  EXPECT_EQ(book.touch(1500).answer, Answer::open);
}

TEST(ReadBook, ALaterCopyToTheSameMemoryLandsAfterwards) {
  ReadBook book;
  const ReadId first = add(book);
  const ReadId second = add(book, 1900, 9000);
  const ReadId apart = add(book, 3000, 12000);
  ASSERT_TRUE(book.land(first));
  EXPECT_FALSE(book.land(second));
  EXPECT_TRUE(book.land(apart));
  book.trap(first);
  ASSERT_TRUE(book.claim(first));
  EXPECT_FALSE(book.land(second));
  book.remove(first);
  EXPECT_TRUE(book.land(second));
}

// Whatever happens in whatever order: every copy that is trapped can be opened, by exactly one.
RC_GTEST_PROP(ReadBook, EveryCopyIsOpenedOnce, ()) {
  ReadBook book;
  std::vector<ReadId> filling;
  std::vector<ReadId> trapped;
  std::set<ReadId> opening;
  uint64_t added = 0;
  const auto steps = *rc::gen::container<std::vector<uint8_t>>(rc::gen::inRange<uint8_t>(0, 5));
  for (const uint8_t step : steps) {
    if (step == 0) {
      ++added;
      filling.push_back(add(book, (added % 4) * 700, 100'000 + added * 2000));
    } else if (step == 1 && !filling.empty()) {
      if (!book.land(filling.front())) continue;
      book.trap(filling.front());
      trapped.push_back(filling.front());
      filling.erase(filling.begin());
    } else if (step == 2) {
      const auto touched = book.touch(*rc::gen::inRange<uint64_t>(0, 4000));
      if (touched.answer == Answer::open) {
        RC_ASSERT(opening.insert(touched.id).second);
        RC_ASSERT(std::erase(trapped, touched.id) == 1u);
      }
      if (touched.answer == Answer::wait) RC_ASSERT(opening.contains(touched.id));
    } else if (step == 3 && !trapped.empty()) {
      RC_ASSERT(book.claim(trapped.back()));
      opening.insert(trapped.back());
      trapped.pop_back();
    } else if (step == 4 && !opening.empty()) {
      book.remove(*opening.begin());
      opening.erase(opening.begin());
    }
  }
  RC_ASSERT(book.put_off({0, UINT64_MAX}).size() == trapped.size() + opening.size());
}

}  // namespace
}  // namespace sealane::serve
