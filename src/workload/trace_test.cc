// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "workload/trace.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "workload/programs_for_tests.h"

namespace sealane::workload {
namespace {

constexpr std::string_view kSmall =
    "sealane-trace 1\n"
    "# a comment, and an empty line\n"
    "\n"
    "create context c1 t1\n"
    "create stream s1 c1 blocking t1\n"
    "create stream s2 c1 nonblocking t2\n"
    "create event e1 t1\n"
    "alloc host pinned 0x7f0000000000 4194304 t1\n"
    "alloc device c1 0x200000 4194304 t1\n"
    "write 0x7f0000000000 4096 t1 +100\n"
    "copy h2d s1 0x200000 0x7f0000000000 4194304 pinned async t1 +250 @13000\n"
    "launch s1 5000 t1\n"
    "record e1 s1 t1\n"
    "wait s2 e1 t2\n"
    "copy d2d s2 0x200000 0x300000 16 t2\n"
    "copy d2h s2 0x7f0000000000 0x200000 64 pinned sync t2\n"
    "query event e1 t1\n"
    "sync event e1 t1\n"
    "query stream s1 t1\n"
    "sync stream s2 t2\n"
    "sync context c1 t1 @14000\n"
    "read 0x7f0000000000 64 t1\n"
    "free host 0x7f0000000000 t1\n"
    "free device 0x200000 t1\n"
    "destroy event e1 t1\n"
    "destroy stream s2 t1\n"
    "destroy context c1 t1\n";

TEST(Trace, ReadsEveryOperation) {
  const auto program = parse_trace(kSmall, "x.trace");
  ASSERT_TRUE(program) << program.error().message;
  ASSERT_EQ(program->size(), 24u);
  const Operation& copy = (*program)[7];
  EXPECT_EQ(copy.thread, ThreadId{1});
  EXPECT_EQ(copy.think, Duration(250));
  EXPECT_EQ(copy.at, Instant(Duration(13'000)));
  EXPECT_EQ(copy.action, Action(Copy{StreamId{1},
                                     Direction::to_device,
                                     {0x7f0000000000, 4'194'304},
                                     0x200000,
                                     MemoryKind::pinned,
                                     CallKind::async}));
  EXPECT_EQ((*program)[12].action, Action(Copy{StreamId{2},
                                               Direction::to_host,
                                               {0x7f0000000000, 64},
                                               0x200000,
                                               MemoryKind::pinned,
                                               CallKind::sync}));
}

TEST(Trace, WritesWhatItRead) {
  const auto program = parse_trace(kSmall, "x.trace");
  ASSERT_TRUE(program);
  std::string expected(kSmall);
  expected.erase(expected.find('#'), expected.find("create") - expected.find('#'));
  EXPECT_EQ(format_trace(*program), expected);
}

RC_GTEST_PROP(Trace, RoundTrip, (uint64_t seed)) {
  const auto length = *rc::gen::inRange<size_t>(0, 300);
  const Program program = arbitrary_program(seed, length);
  const auto again = parse_trace(format_trace(program), "x.trace");
  if (!again) RC_FAIL(again.error().message);
  RC_ASSERT(*again == program);
}

RC_GTEST_PROP(Trace, DamagedTracesAreRefusedOrRead, (uint64_t seed, unsigned char byte)) {
  std::string text = format_trace(arbitrary_program(seed, 40));
  text[*rc::gen::inRange<size_t>(0, text.size())] = static_cast<char>(byte);
  const auto program = parse_trace(text, "x.trace");
  if (!program) {
    RC_ASSERT(program.error().message.starts_with("x.trace:"));
    RC_ASSERT(program.error().message.find('\n') == std::string::npos);
  }
}

// `lines` after a header, one context and one stream; the message without "x.trace:".
std::string error_of(const std::string& lines) {
  const auto program = parse_trace(
      "sealane-trace 1\ncreate context c1 t1\ncreate stream s1 c1 legacy t1\n" + lines, "x.trace");
  if (program) return "accepted";
  EXPECT_EQ(program.error().kind, ErrorKind::usage);
  EXPECT_TRUE(program.error().message.starts_with("x.trace:"));
  return program.error().message.substr(8);
}

TEST(Trace, MistakesOfForm) {
  EXPECT_EQ(error_of("jump t1\n"), "4: unknown word 'jump'");
  EXPECT_EQ(error_of("launch s1 10 t1\ncopy h2h s1 t1\n"), "5: unknown word 'h2h'");
  EXPECT_EQ(error_of("launch 1 10 t1\n"), "4: expected a stream such as s1, not '1'");
  EXPECT_EQ(error_of("launch s1 -10 t1\n"), "4: expected nanoseconds, not '-10'");
  EXPECT_EQ(error_of("launch s1 10\n"), "4: expected a thread such as t1, not ''");
  EXPECT_EQ(error_of("launch s4294967296 10 t1\n"),
            "4: expected a stream such as s1, not 's4294967296'");
  EXPECT_EQ(error_of("write 7f00 1 t1\n"), "4: expected an address such as 0x7f00, not '7f00'");
  EXPECT_EQ(error_of("write 0x7f00 1K t1\n"), "4: expected a number of bytes, not '1K'");
  EXPECT_EQ(error_of("copy h2d s1 0x1 0x2 3 pined async t1\n"),
            "4: expected one of pageable, pinned, managed, not 'pined'");
  EXPECT_EQ(error_of("launch s1 10 t1 @5 +5\n"), "4: unexpected '+5' after the thread");
  EXPECT_EQ(error_of("launch s1 10 t1 now\n"), "4: unexpected 'now' after the thread");
  EXPECT_EQ(error_of("launch s1 10 t1"), "4: the trace is cut off in this line");
  EXPECT_EQ(error_of("launch s1 10 t1\r\n"), "4: expected a thread such as t1, not 't1?'");
  EXPECT_EQ(error_of(std::string(1'000'000, 'x')), "4: the line is too long for a trace");
}

TEST(Trace, MistakesOfTheProgram) {
  EXPECT_EQ(error_of("launch s2 10 t1\n"), "4: there is no stream s2");
  EXPECT_EQ(error_of("create stream s1 c1 legacy t1\n"), "4: stream s1 exists already");
  EXPECT_EQ(error_of("create stream s2 c9 legacy t1\n"), "4: there is no context c9");
  EXPECT_EQ(error_of("destroy context c1 t1\nlaunch s1 10 t1\n"), "5: there is no stream s1");
  EXPECT_EQ(error_of("wait s1 e1 t1\n"), "4: there is no event e1");
  EXPECT_EQ(error_of("alloc host pinned 0x1000 16 t1\nalloc host pinned 0x100f 1 t1\n"),
            "5: the memory is allocated already");
  EXPECT_EQ(error_of("alloc host pinned 0x1000 16 t1\nalloc host pinned 0xfff 2 t1\n"),
            "5: the memory is allocated already");
  EXPECT_EQ(error_of("alloc host pinned 0x1000 16 t1\nalloc host pinned 0xfff 1 t1\n"), "accepted");
  EXPECT_EQ(error_of("alloc device c1 0x1000 0 t1\n"), "4: an allocation needs at least one byte");
  EXPECT_EQ(error_of("free host 0x1000 t1\n"),
            "4: no allocation begins at the address that is freed");
  EXPECT_EQ(error_of("write 0xffffffffffffffff 2 t1\n"),
            "4: the range passes the end of the address space");
  EXPECT_EQ(error_of("launch s1 10 t1 @5\nlaunch s1 10 t1 @4\n"),
            "5: the time runs backwards in thread t1");
}

TEST(Trace, MistakesOfTheHeader) {
  EXPECT_EQ(parse_trace("", "x").error().message,
            "x:1: not a trace: the first line must be 'sealane-trace 1'");
  EXPECT_EQ(parse_trace("hello\n", "x").error().message,
            "x:1: not a trace: the first line must be 'sealane-trace 1'");
  EXPECT_EQ(parse_trace("sealane-trace 2\n", "x").error().message,
            "x:1: a trace of another version: this program reads version 1");
  EXPECT_EQ(load_trace("/no/such.trace").error().message,
            "/no/such.trace: cannot be read or is empty");
}

TEST(Trace, AnErrorIsRepeated) {
  std::istringstream in("sealane-trace 1\njump t1\ncreate context c1 t1\n");
  TraceReader reader(in, "x");
  ASSERT_FALSE(reader.next());
  const auto again = reader.next();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, "x:2: unknown word 'jump'");
}

TEST(Trace, AMillionLines) {
  std::string text(trace_header());
  text += "create context c1 t1\ncreate stream s1 c1 legacy t1\n";
  constexpr size_t kLines = 1'000'000;
  while (text.size() < kLines * 70) {
    text += "copy h2d s1 0x200000 0x7f0000000000 4194304 pinned async t1 +250 @13000\n";
  }
  std::istringstream in(std::move(text));
  TraceReader reader(in, "x");
  size_t operations = 0;
  for (;;) {
    const auto operation = reader.next();
    ASSERT_TRUE(operation) << operation.error().message;
    if (!*operation) break;
    ++operations;
  }
  EXPECT_GT(operations, 900'000u);
}

}  // namespace
}  // namespace sealane::workload
