// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a copy when there is no memory for its books? Every allocation of a call is
// refused once; behind the call none may be asked for.

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "core/copy/copies.h"

namespace {

thread_local int64_t allocations_left = INT64_MAX;

}  // namespace

// Out of line: the compiler must not see through them.
[[gnu::noinline]] void* operator new(size_t bytes) {
  if (allocations_left <= 0) throw std::bad_alloc();
  --allocations_left;
  void* const memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace sealane {
namespace {

constexpr ErrorCode kForged = 214;

class Starved {  // so many allocations succeed while it is there
 public:
  explicit Starved(int64_t after) { allocations_left = after; }
  ~Starved() { allocations_left = INT64_MAX; }
};

CopyCall copy_of(Direction direction, StreamKey stream, uint64_t page, HostKind memory) {
  CopyCall call;
  call.direction = direction;
  call.stream = stream;
  call.context = stream;
  call.host = {(1 << 20) + page * 4096, 512};
  call.device_address = (uint64_t{1} << 40) + page * 4096;
  call.memory = memory;
  return call;
}

CopyCall copy_in(StreamKey stream, uint64_t page, HostKind memory = HostKind::pinned) {
  return copy_of(Direction::to_device, stream, page, memory);
}
CopyCall copy_out(StreamKey stream, uint64_t page, HostKind memory = HostKind::pinned) {
  return copy_of(Direction::to_host, stream, page, memory);
}

CopiesOptions with_company() {
  CopiesOptions options;
  options.costs = CrossingCosts();
  return options;
}

// A machine with everything its threads fill as large as it can get.
struct Driven {
  Driven() {
    endings.reserve(Copies::kEndingsMax);
    events.reserve(Copies::kToldMax);
    turns.reserve(Copies::kToldMax);
  }
  void open_threads(const CopyCall& call) {
    while (const auto missing = copies.missing_thread(call)) copies.handle_thread(*missing, true);
  }
  bool ask(const std::vector<CopyCall>& calls) {
    for (const CopyCall& call : calls) open_threads(call);
    copies.handle_copies(calls, plan, {});
    if (plan.verdict == CopyVerdict::carried) copies.handle_put(plan);
    return plan.verdict == CopyVerdict::carried;
  }
  // What the threads do until nothing is left; the first crossing of thread 0 ends with `code`.
  void run(ErrorCode code = 0) {
    for (int round = 0; round < 100 && !copies.idle(); ++round) {
      for (CopyThreadId thread = 0; thread < kFirstBulkThread; ++thread) {
        copies.awaited(thread, events);
        for (const EventKey event : events) copies.handle_reached(event);
        copies.at_turn(thread, turns);
        if (copies.take(thread, {}) == nullptr) continue;
        copies.handle_crossed(thread, std::exchange(code, 0), endings);
        copies.handle_delivered(thread, endings);
        copies.handle_ended(thread, {});
        while (copies.forgotten()) {
        }
      }
    }
  }

  Copies copies{with_company()};
  CallPlan plan;
  std::vector<Ending> endings;
  std::vector<EventKey> events;
  std::vector<CopyId> turns;
};

TEST(CopiesMemory, ACallThatGetsNoneIsPassedAndLeavesNoTrace) {
  const std::vector<CopyCall> calls = {copy_in(7, 1), copy_in(7, 2, HostKind::pageable),
                                       copy_out(7, 3, HostKind::registered), copy_in(7, 1)};
  int64_t refused = 0;
  for (bool carried = false; !carried; ++refused) {
    ASSERT_LT(refused, 200);
    Driven driven;
    driven.ask({copy_in(7, 0)});
    driven.ask({copy_in(8, 9), copy_out(8, 5)});
    for (const CopyCall& call : calls) driven.open_threads(call);
    driven.copies.handle_work(7, false);
    {
      const Starved starved(refused);
      driven.copies.handle_copies(calls, driven.plan, {});
    }
    carried = driven.plan.verdict == CopyVerdict::carried;
    if (carried) {
      driven.copies.handle_put(driven.plan);
    } else {
      EXPECT_EQ(driven.plan.verdict, CopyVerdict::passed);
      EXPECT_TRUE(driven.plan.copies.empty() && driven.plan.steps.empty());
      EXPECT_FALSE(driven.copies.touched(calls[2].host)) << "allocation " << refused;
      EXPECT_EQ(driven.copies.threads().pending(0) + driven.copies.threads().pending(1), 2U);
      // The next one begins anew: the driver's own copy is in the stream.
      ASSERT_TRUE(driven.ask({copy_in(7, 6)}));
      EXPECT_TRUE(std::holds_alternative<RecordEvent>(driven.plan.steps.front()));
    }
    driven.run();
    EXPECT_TRUE(driven.copies.idle()) << "allocation " << refused;
  }
  EXPECT_GT(refused, 10) << "a call of four copies asks for more than that";
}

TEST(CopiesMemory, BehindTheCallNobodyNeedsAny) {
  for (const ErrorCode code : {0, kForged}) {
    Driven driven;
    for (uint64_t i = 0; i < 40; ++i) {
      driven.ask({copy_in(7, i)});
      driven.ask({copy_out(7 + i, 50 + i, i % 2 == 0 ? HostKind::registered : HostKind::pinned)});
      if (i % 5 == 0) driven.copies.handle_work(7, false);
    }
    {
      const Starved starved(0);
      EXPECT_NO_THROW(driven.run(code));
      EXPECT_NO_THROW(driven.copies.handle_stream_gone(7));
      EXPECT_NO_THROW(driven.copies.handle_context_gone(8));
    }
    EXPECT_TRUE(driven.copies.idle());
  }
}

TEST(CopiesMemory, WhatCouldNotBePutIntoTheStreamNeedsNoneToBeForgotten) {
  Driven driven;
  driven.ask({copy_in(7, 0)});
  driven.copies.handle_work(7, false);
  driven.copies.handle_copies(std::vector{copy_in(7, 1), copy_out(7, 2)}, driven.plan, {});
  {
    const Starved starved(0);
    EXPECT_NO_THROW(driven.copies.handle_refused(driven.plan, {}));
    EXPECT_NO_THROW(driven.run());
  }
  EXPECT_TRUE(driven.copies.idle());
}

}  // namespace
}  // namespace sealane
