// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is what `sealane record` writes a trace, whatever it is told and in whatever order, and does it
// say what the program did?

#include "watch/recorder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "watch/scratch.h"
#include "workload/trace.h"

namespace sealane::serve {
namespace {

using test::contents;
using test::Scratch;

class ManualClock final : public Clock {
 public:
  Instant now() const override { return now_; }
  void advance(int64_t ns) { now_ += Duration(ns); }

 private:
  Instant now_{Duration(1000)};
};

// A program's thread, told to a recorder call by call: each takes 10 ns after 5 ns of thought.
class Caller {
 public:
  explicit Caller(const std::string& path, bool host_writes = false)
      : recorder_({.path = path, .clock = &clock_, .host_writes = host_writes}) {}

  Event& next(EventKind kind, Call call = Call::other) {
    event_ = {};
    event_.kind = kind;
    event_.call = call;
    event_.context = 0xc0;
    return event_;
  }
  void tell() {
    clock_.advance(5);
    event_.begin = clock_.now();
    clock_.advance(10);
    event_.end = clock_.now();
    recorder_.handle(event_);
  }
  void copy(Direction direction, uint64_t stream, uint64_t device, uint64_t host, uint64_t bytes,
            bool pinned, bool asynchronous) {
    Event& event = next(EventKind::copy);
    event.direction = direction;
    event.stream = stream;
    event.device_address = device;
    event.host = host;
    event.bytes = bytes;
    event.pinned = pinned;
    event.asynchronous = asynchronous;
    tell();
  }
  Recorder& recorder() { return recorder_; }

 private:
  ManualClock clock_;
  Recorder recorder_;
  Event event_;
};

TEST(Recorder, WritesWhatTheProgramDid) {
  const Scratch scratch;
  Caller caller(scratch.file("t"));
  caller.next(EventKind::call, Call::create_stream).stream = 0x51;
  caller.tell();
  caller.next(EventKind::call, Call::allocate_host).host = 0x7000;
  caller.next(EventKind::call, Call::allocate_host).pinned = true;
  Event& block = caller.next(EventKind::call, Call::allocate_host);
  block.host = 0x7000;
  block.bytes = 4096;
  block.pinned = true;
  caller.tell();
  Event& memory = caller.next(EventKind::call, Call::allocate_device);
  memory.device_address = 0x200000;
  memory.bytes = 8192;
  caller.tell();
  caller.copy(Direction::to_device, 0x51, 0x200000, 0x7000, 4096, true, true);
  Event& launch = caller.next(EventKind::call, Call::launch);
  launch.stream = 0x51;
  launch.id = 3;
  caller.tell();
  caller.copy(Direction::to_host, 0, 0x200000, 0x9000, 64, false, false);
  Event& took = caller.next(EventKind::call, Call::launch_time);
  took.id = 3;
  took.bytes = 5000;
  caller.tell();
  Event& wait = caller.next(EventKind::wait, Call::sync_stream);
  wait.stream = 0x51;
  caller.tell();
  caller.recorder().finish();

  EXPECT_EQ(contents(scratch.file("t")),
            "sealane-trace 1\n"
            "create context c1 t1\n"
            "create stream s1 c1 blocking t1\n"
            "alloc host pinned 0x7000 4096 t1 +5 @1020\n"
            "alloc device c1 0x200000 8192 t1 +5 @1035\n"
            "copy h2d s1 0x200000 0x7000 4096 pinned async t1 +5 @1050\n"
            "launch s1 5000 t1 +5 @1065\n"
            "create stream s2 c1 legacy t1\n"
            "copy d2h s2 0x9000 0x200000 64 pageable sync t1 +5 @1080\n"
            "sync stream s1 t1 +20 @1110\n");
  EXPECT_TRUE(workload::load_trace(scratch.file("t")).ok());
}

// Events of a driver under load once said that a kernel had ended 5,631 ns before it began.
TEST(Recorder, AKernelThatEndedBeforeItBeganHasNoTime) {
  const Scratch scratch;
  Caller caller(scratch.file("t"));
  Event& launch = caller.next(EventKind::call, Call::launch);
  launch.stream = 0x51;
  launch.context = 1;
  launch.id = 3;
  caller.tell();
  Event& took = caller.next(EventKind::call, Call::launch_time);
  took.id = 3;
  took.bytes = static_cast<uint64_t>(int64_t{-5631});
  caller.tell();
  caller.recorder().finish();
  const std::string trace = contents(scratch.file("t"));
  EXPECT_NE(trace.find("launch s1 0 t1"), std::string::npos) << trace;
  EXPECT_NE(trace.find("# the run times of 1 launches are unknown"), std::string::npos) << trace;
  EXPECT_TRUE(workload::load_trace(scratch.file("t")).ok());
}

// A call within another one, told when that is told: nobody thought in between.
TEST(Recorder, ACallThatBeganBeforeTheLastOneReturnedHasNoThinkTime) {
  const Scratch scratch;
  ManualClock clock;
  Recorder recorder({.path = scratch.file("t"), .clock = &clock, .host_writes = false});
  for (const int64_t before_now : {0, 3, 20}) {
    Event event;
    event.kind = EventKind::copy;
    event.context = 0xc0;
    event.stream = 1;
    event.device_address = 0x1000;
    event.host = 0x7f00;
    event.bytes = 64;
    event.begin = clock.now() - Duration(before_now);
    clock.advance(10);
    event.end = clock.now();
    recorder.handle(event);
  }
  recorder.finish();
  const auto program = workload::load_trace(scratch.file("t"));
  ASSERT_TRUE(program.ok()) << program.error().message << contents(scratch.file("t"));
  for (const workload::Operation& operation : *program) {
    EXPECT_EQ(operation.think, Duration(0)) << contents(scratch.file("t"));
  }
}

TEST(Recorder, ALaunchThatNobodyTimedTakesNoTime) {
  const Scratch scratch;
  Caller caller(scratch.file("t"));
  Event& launch = caller.next(EventKind::call, Call::launch);
  launch.id = 9;
  caller.tell();
  caller.recorder().finish();
  const std::string text = contents(scratch.file("t"));
  EXPECT_NE(text.find("launch s1 0 t1"), std::string::npos) << text;
  EXPECT_NE(text.find("# the run times of 1 launches are unknown\n"), std::string::npos) << text;
  EXPECT_TRUE(workload::load_trace(scratch.file("t")).ok());
}

TEST(Recorder, LeavesOutWhatFailed) {
  const Scratch scratch;
  Caller caller(scratch.file("t"));
  caller.next(EventKind::copy).code = 1;
  caller.tell();
  caller.next(EventKind::call, Call::query_stream).code = 600;
  caller.tell();
  caller.recorder().finish();
  const auto program = workload::load_trace(scratch.file("t"));
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(std::holds_alternative<workload::QueryStream>(program->back().action));
  EXPECT_EQ(program->size(), 3u);  // with context and stream
}

TEST(Recorder, SeesWritesToTheSourceOfACopy) {
  if (!PageGuards::open()) GTEST_SKIP() << "no asynchronous write protection here";
  const Scratch scratch;
  void* memory = mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto address = reinterpret_cast<uint64_t>(memory);
  std::memset(memory, 1, 65536);
  Caller caller(scratch.file("t"), true);
  const auto copy = [&] { caller.copy(Direction::to_device, 1, 16, address, 65536, false, true); };
  copy();
  copy();
  static_cast<char*>(memory)[5000] = 2;
  copy();
  copy();
  caller.recorder().finish();
  munmap(memory, 65536);

  const auto program = workload::load_trace(scratch.file("t"));
  ASSERT_TRUE(program.ok());
  std::string order;
  for (const auto& operation : *program) {
    if (std::holds_alternative<workload::Copy>(operation.action)) order += 'c';
    if (std::holds_alternative<workload::WriteHost>(operation.action)) order += 'w';
  }
  EXPECT_EQ(order, "ccwcc");
}

// Handles and addresses from a few values, so that they collide, vanish and come back.
Event any_event() {
  Event event;
  event.kind = *rc::gen::element(EventKind::copy, EventKind::call, EventKind::call, EventKind::call,
                                 EventKind::wait, EventKind::message);
  event.call = static_cast<Call>(*rc::gen::inRange(0, static_cast<int>(Call::sync_event) + 1));
  event.direction = *rc::gen::element(Direction::to_device, Direction::to_host);
  event.asynchronous = *rc::gen::arbitrary<bool>();
  event.pinned = *rc::gen::arbitrary<bool>();
  event.code = *rc::gen::element(0, 0, 0, 0, 600, 1);
  event.id = *rc::gen::inRange<uint64_t>(0, 4);
  event.bytes = *rc::gen::inRange<uint64_t>(0, 100);
  event.host = *rc::gen::inRange<uint64_t>(0, 300);
  event.device_address = *rc::gen::inRange<uint64_t>(0, 300);
  event.stream = *rc::gen::inRange<uint64_t>(0, 6);
  event.context = *rc::gen::inRange<uint64_t>(0, 3);
  event.object = *rc::gen::inRange<uint64_t>(0, 4);
  return event;
}

RC_GTEST_PROP(Recorder, WritesAValidTraceOfAnything, ()) {
  const Scratch scratch;
  ManualClock clock;
  Recorder recorder({.path = scratch.file("t"), .clock = &clock, .host_writes = false});
  Event opener;
  opener.kind = EventKind::copy;
  recorder.handle(opener);
  const int count = *rc::gen::inRange(0, 200);
  for (int i = 0; i < count; ++i) {
    Event event = any_event();
    clock.advance(7);
    event.begin = clock.now();
    clock.advance(3);
    event.end = clock.now();
    recorder.handle(event);
  }
  recorder.finish();
  const auto program = workload::load_trace(scratch.file("t"));
  if (!program) RC_FAIL(program.error().message + "\n" + contents(scratch.file("t")));
}

}  // namespace
}  // namespace sealane::serve
