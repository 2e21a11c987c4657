// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Are numbers that would make long lists replaced, each by one of its own, and all others kept?

#include "workload/numbers.h"

#include <gtest/gtest.h>

#include <string>

#include "workload/trace.h"

namespace sealane::workload {
namespace {

Program program_of(const std::string& lines) {
  auto program = parse_trace(std::string(trace_header()) + lines, "t");
  EXPECT_TRUE(program) << program.error().message;
  return program ? *program : Program{};
}

TEST(Numbers, ThatAreLargeBecomeSmallEachItsOwn) {
  Program program = program_of(
      "create context c4000000000 t4294967295\n"
      "create context c65536 t1\n"
      "create stream s7 c4000000000 blocking t1\n"
      "create stream s4294967295 c65536 blocking t4294967295\n"
      "create event e70000 t1\n"
      "record e70000 s4294967295 t1\n"
      "launch s7 5 t1\n");
  make_numbers_small(program);
  EXPECT_EQ(program, program_of("create context c65536 t65536\n"
                                "create context c65537 t1\n"
                                "create stream s7 c65536 blocking t1\n"
                                "create stream s65536 c65537 blocking t65536\n"
                                "create event e65536 t1\n"
                                "record e65536 s65536 t1\n"
                                "launch s7 5 t1\n"));
}

TEST(Numbers, ThatAreSmallStay) {
  const Program program =
      program_of("create context c65535 t9\ncreate stream s3 c65535 blocking t2\nlaunch s3 5 t1\n");
  Program same = program;
  make_numbers_small(same);
  EXPECT_EQ(same, program);
}

}  // namespace
}  // namespace sealane::workload
