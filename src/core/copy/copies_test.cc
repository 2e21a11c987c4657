// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does the copy machine keep CUDA's promises for copies that travel elsewhere?

#include "core/copy/copies.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <map>
#include <set>

#include "base/random.h"
#include "core/copy/told_for_tests.h"

namespace sealane {
namespace {

TEST(Copies, ACopyGoesWhenWhatWasBeforeItInItsStreamIsDone) {
  Told told;
  EXPECT_EQ(told.ask(copy_in(7, 0)), (Lines{"record 1", "gate 0=1"}));
  EXPECT_EQ(told.take(kIn), "");
  std::vector<EventKey> events;
  told.copies.awaited(kIn, events);
  EXPECT_EQ(events, (std::vector<EventKey>{1}));
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kIn), "carry 1");
  EXPECT_EQ(told.end(kIn), (Lines{"open 0=1"}));
  EXPECT_TRUE(told.copies.idle());
}

// Whatever a stream waits for, another one's event may be what ends that.
TEST(Copies, NoStreamIsLookedAtInAnothersPlace) {
  Told told;
  for (int i = 0; i < 300; ++i) {
    told.ask(copy_in(7, 0));
    told.copies.handle_work(7, false);
  }
  told.ask(copy_in(8, 1));
  told.ask(copy_in(9, 2));
  std::set<EventKey> seen;
  for (const CopyThreadId thread : {kIn, kSecondIn}) {
    std::vector<EventKey> events;
    told.copies.awaited(thread, events);
    EXPECT_LE(events.size(), 3U);
    seen.insert(events.begin(), events.end());
  }
  EXPECT_TRUE(seen.contains(1) && seen.contains(301) && seen.contains(302));
}

TEST(Copies, AllStreamsAreLookedAtHoweverManyThereAre) {
  constexpr StreamKey kStreams = 5 * Copies::kToldMax;
  Told told;
  for (StreamKey stream = 1; stream <= kStreams; ++stream) told.ask(copy_in(stream, stream));
  std::set<EventKey> seen;
  for (size_t look = 0; look < kStreams / Copies::kToldMax; ++look) {
    for (const CopyThreadId thread : {kIn, kSecondIn}) {
      std::vector<EventKey> events;
      told.copies.awaited(thread, events);
      EXPECT_LE(events.size(), Copies::kToldMax);
      seen.insert(events.begin(), events.end());
    }
  }
  EXPECT_EQ(seen.size(), kStreams);
}

TEST(Copies, CopiesWithNothingBetweenThemShareAnEventAndOtherWorkEndsThat) {
  Told told;
  told.ask(copy_in(7, 0));
  EXPECT_EQ(told.ask(copy_in(7, 1)), (Lines{"gate 1=1"})) << "on the second thread";
  told.copies.handle_work(7, false);
  EXPECT_EQ(told.ask(copy_in(7, 2)), (Lines{"record 2", "gate 0=2"}));
  told.copies.handle_work(9, false);
  EXPECT_EQ(told.ask(copy_in(7, 3)), (Lines{"gate 0=3"})) << "another stream's work is its own";
  told.copies.handle_work(1, true);
  EXPECT_EQ(told.ask(copy_in(7, 4)).front(), "record 3") << "the legacy stream's is everybody's";
}

TEST(Copies, AnEventThatWasReachedStaysSo) {
  Told told;
  told.ask(copy_in(7, 0));
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kIn), "carry 1");
  told.end(kIn);
  told.ask(copy_in(7, 1));
  EXPECT_EQ(told.take(kIn), "carry 2") << "of the same run, whose event nobody had any more";
}

TEST(Copies, WhatTouchesWhatAnotherWritesWaitsForIt) {
  Told told;
  told.ask(copy_in(7, 0));
  told.ask(copy_out(7, 0));  // reads what the first writes
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kOut), "");
  EXPECT_EQ(told.take(kIn), "carry 1");
  EXPECT_EQ(told.take(kOut), "");
  told.end(kIn);
  EXPECT_EQ(told.take(kOut), "carry 2");
}

// Who polls the memory of the second may find it before a gate opens.
TEST(Copies, OfOneStreamLandInTheOrderTheyWereAskedForWhateverTheyTouch) {
  Told told;
  told.ask(copy_in(7, 0));
  EXPECT_EQ(told.ask(copy_in(7, 1)), (Lines{"gate 1=1"}));
  told.ask(copy_out(7, 2));
  told.ask(copy_in(8, 3));
  told.copies.handle_reached(1);
  told.copies.handle_reached(2);
  EXPECT_EQ(told.take(kIn), "carry 1");
  EXPECT_EQ(told.take(kSecondIn), "");
  EXPECT_EQ(told.take(kOut), "");
  told.end(kIn);
  EXPECT_EQ(told.take(kOut), "");
  EXPECT_EQ(told.take(kIn), "carry 4") << "another stream's";
  EXPECT_EQ(told.take(kSecondIn), "carry 2");
  EXPECT_EQ(told.take(kOut), "");
  told.end(kSecondIn);
  EXPECT_EQ(told.take(kOut), "carry 3");
}

TEST(Copies, OneThreadOpensTheGatesOfAStreamInOrder) {
  CopiesOptions options;
  options.threads.per_direction = 1;
  Told told(options);
  told.ask(copy_in(7, 0));
  told.ask(copy_in(8, 1));
  told.copies.handle_reached(2);
  EXPECT_EQ(told.take(kIn), "carry 2") << "another stream's copy does not wait for the first";
  told.end(kIn);
  told.ask(copy_in(7, 2));
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kIn), "carry 1");
  EXPECT_EQ(told.end(kIn), (Lines{"open 0=1"}));
  EXPECT_EQ(told.take(kIn), "carry 3");
  EXPECT_EQ(told.end(kIn), (Lines{"open 0=2"}));
}

TEST(Copies, PageableAndRegisteredMemory) {
  Told told;
  CopyCall pageable = copy_in(7, 0);
  pageable.memory = HostKind::pageable;
  EXPECT_EQ(told.ask(pageable), (Lines{"snapshot 1", "record 1", "gate 0=1"}));
  CopyCall back = copy_out(7, 1);
  back.memory = HostKind::pageable;
  EXPECT_EQ(told.ask(back), (Lines{"passed"}));
  CopyCall registered = copy_out(7, 2);
  registered.memory = HostKind::registered;
  told.ask(registered);
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kIn), "carry 1");
  told.end(kIn);
  EXPECT_EQ(told.take(kOut), "carry 2");
  EXPECT_EQ(told.end(kOut), (Lines{"deliver 2", "open 2=1", "give back 2"}));
}

TEST(Copies, ABatchIsOneCallWithOneGateForEachThread) {
  Told told;
  told.ask(copy_in(9, 50));  // so that there are two threads
  told.ask(copy_in(9, 51));
  const Lines lines = told.ask({copy_in(7, 0), copy_in(7, 1), copy_in(7, 2), copy_in(7, 3)});
  EXPECT_EQ(lines, (Lines{"record 2", "gate 0=1", "gate 1=1"}));
}

TEST(Copies, SmallCopiesThatWaitTogetherTravelTogether) {
  CopiesOptions options;
  options.costs = CrossingCosts{};
  options.threads.per_direction = 1;
  Told told(options);
  for (uint64_t page = 0; page < 3; ++page) told.ask(copy_in(7, page));
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kIn), "carry 1 2 3");
  EXPECT_EQ(told.end(kIn), (Lines{"open 0=3"})) << "which opens the gates before it, too";
  EXPECT_EQ(told.copies.together(), 2U);
}

TEST(Copies, AForgedCopyFailsItsContextBeforeAnybodyGoesOn) {
  Told told;
  told.ask(copy_out(7, 0));
  told.ask(copy_out(7, 1));
  CopyCall other = copy_out(8, 2);
  other.context = 2;
  told.ask(other);
  for (EventKey event : {1, 2}) told.copies.handle_reached(event);
  EXPECT_EQ(told.take(kOut), "carry 1");
  EXPECT_EQ(told.end(kOut, kForged), (Lines{"wipe 1", "fail 1", "open 2=1"}));
  EXPECT_EQ(told.copies.failure_of(1), kForged);
  EXPECT_FALSE(told.copies.may_run(1));
  EXPECT_TRUE(told.copies.may_run(2));
  EXPECT_EQ(told.take(kOut + 1), "drop 2") << "nothing more is delivered there";
  EXPECT_EQ(told.end(kOut + 1), (Lines{"open 3=1"}));
  EXPECT_EQ(told.take(kOut), "carry 3") << "another context's copies go on";
  told.end(kOut);
  told.ask(copy_in(7, 5));
  EXPECT_EQ(told.plan.verdict, CopyVerdict::refused);
  told.copies.handle_context_gone(1);
  EXPECT_EQ(told.copies.failure_of(1), 0);
}

// Of those that travel together any may hold what did not verify when the failure is heard of.
TEST(Copies, AllThatAForgedCrossingWroteIsWipedBeforeItsContextFails) {
  CopiesOptions options;
  options.costs = CrossingCosts{};
  options.threads.per_direction = 1;
  Told told(options);
  told.ask(copy_out(7, 0));
  told.ask(copy_out(7, 1));
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kOut), "carry 1 2");
  EXPECT_EQ(told.end(kOut, kForged), (Lines{"wipe 1", "wipe 2", "fail 1", "open 2=2"}));
}

TEST(Copies, WhatReachedTheHostWhileItsContextFailedIsWiped) {
  Told told;
  told.ask(copy_out(7, 0));
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kOut), "carry 1");
  told.copies.handle_failed(1, kForged);
  EXPECT_EQ(told.end(kOut), (Lines{"wipe 1", "fail 1", "open 2=1"}));
}

TEST(Copies, WhileAnyStreamIsCapturedNothingIsCarried) {
  Told told;
  told.copies.handle_capture(true);
  EXPECT_EQ(told.ask(copy_in(7, 0)), (Lines{"passed"}));
  told.copies.handle_capture(false);
  EXPECT_EQ(told.ask(copy_in(7, 0)), (Lines{"record 1", "gate 0=1"}));
}

TEST(Copies, MemoryIsBusyUntilTheLastCopyThatTouchesItHasEnded) {
  Told told;
  told.ask(copy_in(7, 0));
  EXPECT_TRUE(told.copies.busy({kHost + 100, 1}));
  EXPECT_TRUE(told.copies.busy({kDevice, 1}));
  EXPECT_FALSE(told.copies.busy({kHost + 4096, 1}));
  told.copies.handle_reached(1);
  told.take(kIn);
  told.end(kIn);
  EXPECT_FALSE(told.copies.busy({kHost + 100, 1}));
}

TEST(Copies, WithoutAThreadCopiesPass) {
  Told told;
  const CopyCall call = copy_in(7, 0);
  const auto missing = told.copies.missing_thread(call);
  ASSERT_TRUE(missing);
  told.copies.handle_thread(*missing, false);
  EXPECT_FALSE(told.copies.missing_thread(call)) << "a thread that cannot be had is not asked for";
  EXPECT_EQ(told.ask(call), (Lines{"passed"}));
  told.copies.handle_context_gone(3);
  EXPECT_TRUE(told.copies.missing_thread(call)) << "until there is room again";
}

// Two callers may want their contexts at a time.
TEST(Copies, ThreadsThatAreToGoGetNothingUntilTheyHaveGoneOrStay) {
  Told told;
  const auto carried = [&](const CopyCall& call) { return told.ask(call) != Lines{"passed"}; };
  ASSERT_TRUE(carried(copy_in(7, 0)));
  ASSERT_TRUE(carried(copy_out(8, 1)));
  told.copies.handle_leaving();
  told.copies.handle_leaving();
  EXPECT_FALSE(carried(copy_in(7, 2)));
  told.copies.handle_context_gone(3);
  EXPECT_FALSE(told.copies.missing_thread(copy_in(7, 2))) << "it is there still";
  EXPECT_TRUE(told.copies.threads().is_leaving(kIn));
  told.copies.handle_left(kIn, true);
  told.copies.handle_left(kOut, false);
  EXPECT_TRUE(told.copies.missing_thread(copy_in(7, 2)));
  EXPECT_TRUE(carried(copy_out(8, 3)));
}

TEST(Copies, AThreadThatBrokeGetsNothingUntilItIsMended) {
  Told told;
  const auto carried = [&](const CopyCall& call) { return told.ask(call) != Lines{"passed"}; };
  ASSERT_TRUE(carried(copy_in(7, 0)));
  told.copies.handle_broken(kIn, told.copies.threads().rooms());
  EXPECT_FALSE(told.copies.missing_thread(copy_in(7, 1))) << "there is no room";
  EXPECT_FALSE(carried(copy_in(7, 1)));
  told.copies.handle_context_gone(3);
  EXPECT_EQ(told.copies.missing_thread(copy_in(7, 1)), kIn);
  told.copies.handle_leaving();
  told.copies.handle_context_gone(3);
  EXPECT_FALSE(told.copies.missing_thread(copy_in(7, 1))) << "nothing is opened in its place yet";
  told.copies.handle_mended(kIn);
  EXPECT_FALSE(carried(copy_in(7, 1))) << "it is to go";
  told.copies.handle_left(kIn, false);
  EXPECT_TRUE(carried(copy_in(7, 1)));
}

TEST(Copies, RoomThatComesWhileNoneIsFoundIsLookedAtOnceMore) {
  Told told;
  const uint64_t before = told.copies.threads().rooms();
  told.copies.handle_context_gone(3);
  told.copies.handle_thread(kIn, false, nullptr, before);
  EXPECT_EQ(told.copies.missing_thread(copy_in(7, 0)), kIn);
  told.copies.handle_thread(kIn, true);
  const uint64_t again = told.copies.threads().rooms();
  told.copies.handle_context_gone(3);
  told.copies.handle_broken(kIn, again);
  EXPECT_EQ(told.copies.missing_thread(copy_in(7, 0)), kIn);
  told.copies.handle_broken(kIn, told.copies.threads().rooms());
  EXPECT_FALSE(told.copies.missing_thread(copy_in(7, 0)));
}

TEST(Copies, WhatCouldNotBePutIntoTheStreamIsPassed) {
  Told told;
  told.ask(copy_in(7, 0));
  told.plan.done = 0;  // the event could not be recorded
  EXPECT_FALSE(told.copies.handle_refused(told.plan, {}));
  EXPECT_TRUE(told.copies.idle());
  EXPECT_EQ(told.ask(copy_in(7, 0)).front(), "record 2") << "its event is not relied upon";
  told.ask({copy_in(7, 1), copy_in(7, 2)});
  told.plan.done = 1;  // the first gate is in the stream, the second is not
  EXPECT_TRUE(told.copies.handle_refused(told.plan, {}));
  EXPECT_FALSE(told.copies.idle());
}

TEST(Copies, NothingGoesBeforeAllThatItsCallPutsIntoTheStreamIsThere) {
  Told told;
  told.ask(copy_in(7, 0));
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kIn), "carry 1");
  told.end(kIn);
  const CopyCall call = copy_in(7, 1);  // goes on with the run, whose event is reached
  told.copies.handle_copies(std::vector{call}, told.plan, {});
  EXPECT_EQ(told.take(kIn), "") << "its gate is not in the stream yet";
  told.copies.handle_put(told.plan);
  EXPECT_EQ(told.take(kIn), "carry 2");
}

TEST(Copies, NorDoesItTravelWithAnotherBeforeItsGateIsThere) {
  CopiesOptions options;
  options.costs = CrossingCosts();
  options.threads.per_direction = 1;
  Told told(options);
  told.ask(copy_in(7, 0, 64));
  told.copies.handle_reached(1);
  told.copies.handle_copies(std::vector{copy_in(7, 1, 64)}, told.plan, {});
  EXPECT_EQ(told.take(kIn), "carry 1");
  told.end(kIn);
  told.copies.handle_put(told.plan);
  EXPECT_EQ(told.take(kIn), "carry 2");
}

TEST(Copies, ACopyBehindWorkThatFailedDoesNotHappen) {
  Told told;
  told.ask(copy_out(7, 0));
  told.copies.handle_reached(1, 700);
  EXPECT_EQ(told.take(kOut), "drop 1");
  EXPECT_EQ(told.end(kOut), (Lines{"open 2=1"})) << "the driver knows of the error";
  EXPECT_EQ(told.copies.failure_of(copy_out(7, 0).context), 700);
}

// A copy of the driver's reaches into one allocation of either side.
TEST(Copies, WhatLiesEndToEndInTwoAllocationsDoesNotTravelTogether) {
  CopiesOptions options;
  options.costs = CrossingCosts();
  options.threads.per_direction = 1;
  for (const bool device : {false, true}) {
    Told told(options);
    CopyCall first = copy_in(7, 0);
    CopyCall second = copy_in(7, 1);
    told.ask(first);
    told.ask(second);
    told.copies.handle_reached(1);
    EXPECT_EQ(told.take(kIn), "carry 1 2") << "of one";
    Told apart(options);
    (device ? second.device_block : second.host_block) = 1;
    apart.ask(first);
    apart.ask(second);
    apart.copies.handle_reached(1);
    EXPECT_EQ(apart.take(kIn), "carry 1");
  }
}

TEST(Copies, WhatCannotBeDeliveredFailsItsContext) {
  constexpr ErrorCode kGone = 700;
  Told told;
  CopyCall call = copy_out(7, 0);
  call.memory = HostKind::registered;
  told.ask(call);
  told.copies.handle_reached(1);
  EXPECT_EQ(told.take(kOut), "carry 1");
  EXPECT_EQ(told.end(kOut, 0, kGone),
            (Lines{"deliver 1", "wipe 1", "fail 1", "open 2=1", "give back 1"}));
  EXPECT_EQ(told.copies.failure_of(1), kGone);
}

TEST(Copies, WhatIsDeliveredWhileItsContextFailsIsWiped) {
  Told told;
  CopyCall call = copy_out(7, 0);
  call.memory = HostKind::registered;
  told.ask(call);
  told.copies.handle_reached(1);
  ASSERT_EQ(told.take(kOut), "carry 1");
  told.delivered = [&] { told.copies.handle_failed(call.context, kForged); };
  EXPECT_EQ(told.end(kOut), (Lines{"deliver 1", "wipe 1", "fail 1", "open 2=1", "give back 1"}));
}

TEST(Copies, OfSeveralThatCannotTravelTogetherTheFirstGoesAlone) {
  CopiesOptions options;
  options.costs = CrossingCosts();
  options.threads.per_direction = 1;
  Told told(options);
  for (uint64_t page = 0; page < 3; ++page) told.ask(copy_in(7, page, 64));
  told.copies.handle_reached(1);
  ASSERT_EQ(told.take(kIn), "carry 1 2 3");
  const CopyList alone = told.copies.take_alone(kIn)->copies;
  EXPECT_EQ(std::vector(alone.begin(), alone.end()), std::vector<CopyId>{1});
  EXPECT_EQ(told.end(kIn), (Lines{"open 0=1"}));
  ASSERT_EQ(told.take(kIn), "carry 2 3");
  EXPECT_EQ(told.end(kIn), (Lines{"open 0=3"})) << "the last gate opens those before it";
}

// What lies end to end in the program's memory may not do so where it is carried from.
TEST(Copies, WhatIsGatheredIsWhereItsBytesAre) {
  CopiesOptions options;
  options.costs = CrossingCosts();
  options.threads.per_direction = 1;
  Told told(options);
  for (uint64_t i = 0; i < 2; ++i) {
    CopyCall call = copy_in(7, 0, 64);
    call.device_address += i * 64;
    call.host.address += i * 64;
    if (i == 0) call.ours = 0x777000;
    told.ask(call);
  }
  told.copies.handle_reached(1);
  const Crossing* crossing = told.copies.take(kIn, {});
  ASSERT_EQ(crossing->copies.size(), 2U);
  EXPECT_EQ(crossing->together->host_pieces(), 2U);
}

TEST(Copies, AnEventIsForgottenWhenNobodyAsksForItAnyMore) {
  Told told;
  told.ask(copy_in(7, 0));
  told.copies.handle_stream_gone(7);
  EXPECT_EQ(told.copies.forgotten(), std::nullopt) << "its copy waits for it";
  told.copies.handle_reached(1);
  ASSERT_EQ(told.take(kIn), "carry 1");
  told.end(kIn);
  EXPECT_EQ(told.copies.forgotten(), EventKey{1});
  EXPECT_EQ(told.copies.forgotten(), std::nullopt);
}

// Thread 0 makes the context fail, which takes its time; thread 1 has found nothing to carry.
TEST(Copies, NoGateOfAFailedContextOpensBeforeTheDriverHasFailedIt) {
  Told told;
  told.ask(copy_in(7, 0));
  told.ask(copy_in(8, 1));
  told.ask(copy_in(9, 2));
  for (EventKey event = 1; event <= 3; ++event) told.copies.handle_reached(event);
  ASSERT_EQ(told.take(kIn), "carry 1");
  std::vector<Ending> endings;
  told.copies.handle_crossed(kIn, kForged, endings);
  EXPECT_EQ(Told::said(endings), (Lines{"fail 1", "open 0=1"}));
  ASSERT_EQ(told.take(kSecondIn), "drop 2");
  EXPECT_EQ(told.end(kSecondIn), (Lines{"fail 1", "open 1=1"})) << "it may be the quicker one";
  told.copies.handle_delivered(kIn, endings);
  told.copies.handle_ended(kIn, {});
  ASSERT_EQ(told.take(kIn), "drop 3");
  EXPECT_EQ(told.end(kIn), (Lines{"open 0=1"})) << "the driver knows";
}

// Who finds out otherwise, say when a thread is opened, leaves it to the first copy that ends.
TEST(Copies, AFailureThatNoCopyFoundIsTheDriversTooBeforeAGateOpens) {
  Told told;
  told.ask(copy_in(7, 0));
  told.copies.handle_failed(1, kForged);
  told.copies.handle_reached(1);
  ASSERT_EQ(told.take(kIn), "drop 1");
  EXPECT_EQ(told.end(kIn), (Lines{"fail 1", "open 0=1"}));
}

TEST(Copies, AGateIsNeverZeroHoweverLongTheProgramRuns) {
  CopiesOptions options;
  options.threads.per_direction = 1;
  Told told(options);
  told.copies.streams()[copy_in(7, 0)].words.fill(UINT32_MAX - 1);
  EXPECT_EQ(told.ask(copy_in(7, 0)), (Lines{"record 1", "gate 0=4294967295"}));
  EXPECT_EQ(told.ask(copy_in(7, 1)), (Lines{"gate 0=1"}));
  told.copies.handle_reached(1);
  ASSERT_EQ(told.take(kIn), "carry 1");
  EXPECT_EQ(told.end(kIn), (Lines{"open 0=4294967295"}));
  ASSERT_EQ(told.take(kIn), "carry 2");
  EXPECT_EQ(told.end(kIn), (Lines{"open 0=1"})) << "0 would be no gate at all, and stay shut";
}

TEST(Copies, OneContextIsIdleThoughAnotherIsNot) {
  Told told;
  CopyCall other = copy_in(8, 1);
  other.context = 2;
  told.ask(other);
  EXPECT_TRUE(told.copies.idle(1));
  EXPECT_FALSE(told.copies.idle(2));
  EXPECT_FALSE(told.copies.idle());
}

// Whatever a program asks for, on a device with one hardware queue for all streams: every gate is
// opened, no gate before its copy has ended, and in each stream they land one call after the other.
// What crosses before its turn waits only for what has begun before it.
RC_GTEST_PROP(Copies, EveryGateOpensAndNoneTooEarly, ()) {
  SeededRandom random(*rc::gen::arbitrary<uint64_t>());
  CopiesOptions options;
  if (random.chance(0.5)) options.costs = CrossingCosts{};
  options.threads.per_direction = static_cast<uint32_t>(random.between(1, 2));
  if (random.chance(0.7)) options.early_bytes_max = 64_KiB;
  Told told(options);
  Copies& copies = told.copies;
  struct Item {  // of the device's queue
    EventKey event = 0;
    CopyThreadId thread = 0;
    StreamKey stream = 0;
    uint32_t value = 0;
  };
  std::deque<Item> queue;
  std::map<std::pair<StreamKey, CopyThreadId>, uint32_t> words;
  std::map<CopyId, CopyCall> open;  // asked for and not ended
  std::map<CopyId, int> call_of;
  std::map<CopyThreadId, std::vector<CopyId>> crossing;

  const auto run_queue = [&] {
    while (!queue.empty()) {
      const Item item = queue.front();
      if (item.event == 0 && words[{item.stream, item.thread}] < item.value) return;
      if (item.event != 0) copies.handle_reached(item.event);
      queue.pop_front();
    }
  };
  const auto take = [&](CopyThreadId thread) {
    if (crossing.contains(thread)) return;
    const Crossing* taken = copies.take(thread, {});
    if (taken == nullptr) return;
    for (const CopyId id : taken->copies) {
      RC_ASSERT(open.contains(id));  // all of its call is in the stream
      for (const auto& [other, call] : open) {
        const bool mine = std::count(taken->copies.begin(), taken->copies.end(), other) > 0;
        if (other >= id || mine || call.stream != open.at(id).stream) continue;
        if (call_of[other] == call_of[id]) continue;  // those of one call have no order
        const CopyId before = other;
        RC_ASSERT(taken->early);
        RC_ASSERT(!reads_what(open.at(id), copies.side_of(id), call));
        RC_ASSERT(std::any_of(crossing.begin(), crossing.end(), [&](const auto& one) {
          return std::count(one.second.begin(), one.second.end(), before) > 0;
        }));
      }
    }
    crossing[thread].assign(taken->copies.begin(), taken->copies.end());
  };
  const auto end = [&](CopyThreadId thread) {
    if (!crossing.contains(thread)) return;
    for (const CopyId id : crossing[thread]) {
      const bool first = std::none_of(open.begin(), open.end(), [&](const auto& one) {
        return one.first < id && one.second.stream == open.at(id).stream &&
               call_of[one.first] != call_of[id] &&
               std::count(crossing[thread].begin(), crossing[thread].end(), one.first) == 0;
      });
      RC_ASSERT(!copies.may_land(thread) || first);
    }
    if (!copies.may_land(thread)) return;
    std::vector<Ending> endings;
    copies.handle_crossed(thread, 0, endings);
    std::vector<Ending> more;
    copies.handle_delivered(thread, more);
    endings.insert(endings.end(), more.begin(), more.end());
    for (const Ending& ending : endings) {
      if (const auto* gate = std::get_if<OpenGate>(&ending)) {
        uint32_t& word = words[{gate->stream, gate->thread}];
        RC_ASSERT(gate->value > word);
        word = gate->value;
      }
    }
    copies.handle_ended(thread, {});
    for (const CopyId id : crossing[thread]) open.erase(id);
    crossing.erase(thread);
  };
  told.meanwhile = [&] {  // threads do not wait for a call that is not done with its steps
    while (random.chance(0.5)) {
      run_queue();
      const auto thread = static_cast<CopyThreadId>(random.below(4));
      random.chance(0.5) ? take(thread) : end(thread);
    }
  };

  for (int i = 0; i < 300; ++i) {
    const StreamKey stream = random.between(1, 3);
    const auto thread = static_cast<CopyThreadId>(random.below(4));
    switch (random.below(6)) {
      case 0:
      case 1: {
        std::vector<CopyCall> calls;
        const uint64_t count = random.chance(0.2) ? 3 : 1;
        const uint64_t page = random.below(6);
        for (uint64_t k = 0; k < count; ++k) {
          calls.push_back(random.chance(0.7) ? copy_in(stream, page + k)
                                             : copy_out(stream, page + k));
        }
        told.ask(calls);
        RC_ASSERT(told.plan.verdict == CopyVerdict::carried);
        for (size_t k = 0; k < calls.size(); ++k) {
          open[told.plan.copies[k]] = calls[k];
          call_of[told.plan.copies[k]] = i;
        }
        for (const CallStep& step : told.plan.steps) {
          if (const auto* record = std::get_if<RecordEvent>(&step)) {
            queue.push_back({.event = record->event});
          } else if (const auto* gate = std::get_if<PutGate>(&step)) {
            queue.push_back({0, gate->thread, gate->stream, gate->value});
          }
        }
        break;
      }
      case 2:
        copies.handle_work(stream, random.chance(0.1));
        break;
      case 3:
        run_queue();
        break;
      case 4:
        take(thread);
        break;
      default:
        end(thread);
        break;
    }
  }
  for (int i = 0; i < 2000 && !copies.idle(); ++i) {
    run_queue();
    for (CopyThreadId thread = 0; thread < 4; ++thread) {
      take(thread);
      end(thread);
    }
  }
  run_queue();
  RC_ASSERT(copies.idle());
  RC_ASSERT(queue.empty());
}

}  // namespace
}  // namespace sealane
