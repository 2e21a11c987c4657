// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// While one copy of a stream crosses, may the next one cross too, and does it land behind it?

#include <gtest/gtest.h>

#include "core/copy/told_for_tests.h"

namespace sealane {
namespace {

CopiesOptions early() {
  CopiesOptions options;
  options.early_bytes_max = 64_KiB;
  return options;
}

// What takes its time is crossing; landing is a move within the device, or within the host.
TEST(EarlyCopies, WhileOneCrossesTheNextCrossesEarlyAndLandsBehindIt) {
  Told told(early());
  told.ask(copy_in(7, 0));
  EXPECT_EQ(told.ask(copy_in(7, 1)), (Lines{"gate 1=1"}));
  told.ask(copy_out(7, 2));
  EXPECT_EQ(told.take(kIn), "");
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kSecondIn), "") << "nobody waits for what has not begun";
  EXPECT_EQ(told.take(kIn), "carry 1");
  EXPECT_EQ(told.take(kSecondIn), "early 2");
  EXPECT_EQ(told.take(kOut), "early 3");
  EXPECT_FALSE(told.copies.may_land(kSecondIn));
  EXPECT_EQ(told.end(kIn), (Lines{"open 0=1"}));
  EXPECT_TRUE(told.copies.may_land(kSecondIn));
  EXPECT_FALSE(told.copies.may_land(kOut));
  EXPECT_EQ(told.end(kSecondIn), (Lines{"deliver 2", "open 1=1"}));
  EXPECT_TRUE(told.copies.may_land(kOut));
  EXPECT_EQ(told.end(kOut), (Lines{"deliver 3", "open 2=1"}));
  EXPECT_TRUE(told.copies.idle());
}

TEST(EarlyCopies, NothingCrossesEarlyThatReadsWhatIsStillToBeWritten) {
  const auto second_goes = [](const CopyCall& first, const CopyCall& second) {
    Told told(early());
    told.ask(first);
    told.ask(second);
    told.copies.handle_reached(1);
    const bool inward = first.direction == Direction::to_device;
    EXPECT_EQ(told.take(inward ? kIn : kOut), "carry 1");
    return !told.take(inward ? kOut : kIn).empty();
  };
  EXPECT_FALSE(second_goes(copy_in(7, 0), copy_out(7, 0)));
  EXPECT_FALSE(second_goes(copy_out(7, 0), copy_in(7, 0)));
  EXPECT_TRUE(second_goes(copy_in(7, 0), copy_out(7, 1)));
  EXPECT_TRUE(second_goes(copy_out(7, 0), copy_in(7, 1)));
  CopyCall first = copy_out(7, 0);
  CopyCall second = copy_in(7, 1);
  first.memory = second.memory = HostKind::registered;
  EXPECT_FALSE(second_goes(first, second)) << "it may be the same memory at another place";
  second = copy_in(7, 0);
  second.memory = HostKind::pageable;
  EXPECT_TRUE(second_goes(first, second)) << "it was read in the call";
}

// Of those that travel together any may write it, not only the last.
TEST(EarlyCopies, NorWhatAnyOfACrossingIsStillToWrite) {
  CopiesOptions options = early();
  options.costs = CrossingCosts{};
  const auto goes = [&](const auto& first, const auto& second, CopyThreadId there) {
    Told told(options);
    for (uint64_t at = 0; at < 4; ++at) told.ask(first(7, at, 4096));
    const CopyThreadId thread = first(7, 0, 4096).direction == Direction::to_device ? kIn : kOut;
    told.ask(second(7, 2, 4096));
    told.copies.handle_reached(1);
    EXPECT_EQ(told.take(thread), "carry 1");
    told.end(thread);
    EXPECT_EQ(told.take(thread + 1), "carry 2 3 4");
    EXPECT_EQ(told.take(there), "") << "it reads what 3 writes";
    told.end(thread + 1);
    EXPECT_EQ(told.take(there), "carry 5");
  };
  goes(copy_in, copy_out, kOut);
  goes(copy_out, copy_in, kIn);
}

// Where nothing may read its source early, what was read in the call may still cross.
TEST(EarlyCopies, WhatIsReadInPlaceWaitsForItsTurnIfItIsToldTo) {
  const auto goes = [](CopyCall second, bool in_place) {
    CopiesOptions options = early();
    options.early_in_place = in_place;
    Told told(options);
    told.ask(copy_in(7, 0));
    told.ask(second);
    told.copies.handle_reached(1);
    EXPECT_EQ(told.take(kIn), "carry 1");
    const bool inward = second.direction == Direction::to_device;
    const CopyThreadId other = inward ? kSecondIn : kOut;
    const std::string early = told.take(other);
    told.end(kIn);
    if (early.empty()) {
      EXPECT_EQ(told.take(other), "carry 2") << "at its turn";
    }
    return early == "early 2";
  };
  CopyCall registered = copy_in(7, 1);
  registered.memory = HostKind::registered;
  CopyCall pageable = copy_in(7, 1);
  pageable.memory = HostKind::pageable;
  CopyCall read_now = copy_in(7, 1);
  read_now.read_now = true;
  for (const CopyCall& call : {copy_in(7, 1), copy_out(7, 1), registered}) {
    EXPECT_TRUE(goes(call, true));
    EXPECT_FALSE(goes(call, false));
  }
  for (const CopyCall& call : {pageable, read_now}) EXPECT_TRUE(goes(call, false));
}

// Whoever waits to land serves nobody: another thread is left for other streams.
TEST(EarlyCopies, OfADirectionOneThreadNeverWaitsToLand) {
  Told told(early());
  told.ask(copy_in(7, 0));
  told.ask(copy_out(7, 1));
  told.ask(copy_out(7, 2));
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kIn), "carry 1");
  EXPECT_EQ(told.take(kOut), "early 2");
  EXPECT_EQ(told.take(kOut + 1), "");
  told.end(kIn);
  EXPECT_EQ(told.take(kOut + 1), "early 3") << "the other one does not wait any more";
}

TEST(EarlyCopies, NorDoesOneThatIsAlone) {
  Told told(early());
  told.ask(copy_in(7, 0));
  told.ask(copy_out(7, 1));
  told.copies.handle_thread(kOut + 1, false);
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kIn), "carry 1");
  EXPECT_EQ(told.take(kOut), "");
}

TEST(EarlyCopies, NorDoesOneBesideWhichTheOtherIsBroken) {
  Told told(early());
  told.ask(copy_out(8, 9));
  told.ask(copy_in(7, 0));
  told.ask(copy_out(7, 1));
  told.copies.handle_broken(kOut, told.copies.threads().rooms());
  told.copies.handle_reached(1);
  told.copies.handle_reached(2);
  EXPECT_EQ(told.take(kIn), "carry 2");
  EXPECT_EQ(told.take(kOut + 1), "");
}

TEST(EarlyCopies, WhatTakesLongIsNotWaitedFor) {
  Told told(early());
  told.ask(copy_in(7, 0, 64_KiB + 1));
  told.ask(copy_out(7, 100));
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kIn), "carry 1");
  EXPECT_EQ(told.take(kOut), "");
}

TEST(EarlyCopies, WhatIsTooLargeForThatWaitsForItsTurn) {
  Told told(early());
  told.ask(copy_in(7, 0));
  told.ask(copy_in(7, 1, 64_KiB + 1));
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kIn), "carry 1");
  EXPECT_EQ(told.take(kSecondIn), "");
  told.end(kIn);
  EXPECT_EQ(told.take(kSecondIn), "carry 2");
}

// Alone it would pay a toll that its company pays anyway.
TEST(EarlyCopies, SmallOnesWithCompanyWaitForTheirTurnAndTravelTogether) {
  CopiesOptions options = early();
  options.costs = CrossingCosts{};
  Told told(options);
  told.ask(copy_in(7, 0));
  for (uint64_t at = 1; at < 4; ++at) told.ask(copy_in(7, at));
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kIn), "carry 1");
  EXPECT_EQ(told.take(kSecondIn), "");
  told.end(kIn);
  EXPECT_EQ(told.take(kSecondIn), "carry 2 3 4");
}

TEST(EarlyCopies, SmallOnesWithoutCompanyCrossEarlyToo) {
  CopiesOptions options = early();
  options.costs = CrossingCosts{};
  Told told(options);
  told.ask(copy_in(7, 0));
  told.ask(copy_in(7, 1));
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kIn), "carry 1");
  EXPECT_EQ(told.take(kSecondIn), "early 2");
}

TEST(EarlyCopies, WhatCannotCrossEarlyGoesWhenItsTurnHasCome) {
  Told told(early());
  told.ask(copy_in(7, 0));
  told.ask(copy_in(7, 1));
  told.copies.handle_reached(1);
  told.take(kIn);
  EXPECT_EQ(told.take(kSecondIn), "early 2");
  told.end(kIn);
  EXPECT_FALSE(told.copies.take_late(kSecondIn)->early);
  EXPECT_EQ(told.end(kSecondIn), (Lines{"open 1=1"}));
  told.ask(copy_in(7, 2));
  told.ask(copy_in(7, 3));
  EXPECT_EQ(told.take(kIn), "carry 3");
  EXPECT_EQ(told.take(kSecondIn), "") << "it would wait for nothing";
}

TEST(EarlyCopies, BehindAForgedOneNothingLands) {
  Told told(early());
  told.ask(copy_in(7, 0));
  told.ask(copy_out(7, 1));
  told.ask(copy_in(7, 2));
  told.copies.handle_reached(1);
  told.take(kIn);
  EXPECT_EQ(told.take(kOut), "early 2");
  EXPECT_EQ(told.end(kIn, kForged), (Lines{"fail 1", "open 0=1"}));
  EXPECT_EQ(told.take(kIn), "") << "its turn has not come, and it is not carried early either";
  EXPECT_EQ(told.end(kOut), (Lines{"open 2=1"}));
  EXPECT_EQ(told.take(kSecondIn), "drop 3");
}

TEST(EarlyCopies, AForgedOneThatCrossedEarlyWaitsForNobody) {
  Told told(early());
  told.ask(copy_out(7, 0));
  told.ask(copy_out(7, 1));
  told.copies.handle_reached(1);
  told.take(kOut);
  EXPECT_EQ(told.take(kOut + 1), "early 2");
  EXPECT_EQ(told.end(kOut + 1, kForged), (Lines{"fail 1", "open 3=1"})) << "nothing to be wiped";
  EXPECT_EQ(told.end(kOut), (Lines{"wipe 1", "open 2=1"}));
}

// Whoever delivers can fail, too.
TEST(EarlyCopies, WhatCannotLandFailsItsContext) {
  Told told(early());
  told.ask(copy_in(7, 0));
  told.ask(copy_in(7, 1));
  told.copies.handle_reached(1);
  told.take(kIn);
  told.take(kSecondIn);
  told.end(kIn);
  std::vector<Ending> endings;
  told.copies.handle_crossed(kSecondIn, 0, endings);
  EXPECT_EQ(Told::said(endings), (Lines{"deliver 2"}));
  told.copies.handle_delivered(kSecondIn, endings, kForged);
  EXPECT_EQ(Told::said(endings), (Lines{"fail 1", "open 1=1"}));
  told.copies.handle_ended(kSecondIn, {});
  EXPECT_EQ(told.copies.failure_of(1), kForged);
}

}  // namespace
}  // namespace sealane
