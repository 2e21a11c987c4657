// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "support/run_program.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <system_error>

namespace sealane::test {
namespace {

TEST(RunProgram, KeepsBothStreamsAndTheExitCode) {
  const ProgramResult result = run_program({"sh", "-c", "echo result; echo trouble >&2; exit 7"});
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.out, "result\n");
  EXPECT_EQ(result.err, "trouble\n");
  EXPECT_FALSE(result.timed_out);
}

TEST(RunProgram, PassesArgumentsAndInputAsTheyAre) {
  EXPECT_EQ(run_program({"printf", "%s|", "a b", "$HOME", "*"}).out, "a b|$HOME|*|");
  const std::string large(3'000'000, 'x');  // more than a pipe holds
  EXPECT_EQ(run_program({"cat"}, {.environment = {}, .input = large}).out, large);
}

TEST(RunProgram, EnvironmentIsOursWithoutSealaneVariablesPlusTheAdditions) {
  setenv("SEALANE_FROM_OUTSIDE", "1", 1);
  setenv("OUTSIDE", "old", 1);
  const ProgramResult result =
      run_program({"env"}, {.environment = {"SEALANE_AEAD=openssl", "OUTSIDE=new"}, .input = {}});
  EXPECT_EQ(result.out.find("SEALANE_FROM_OUTSIDE"), std::string::npos);
  EXPECT_EQ(result.out.find("OUTSIDE=old"), std::string::npos);
  EXPECT_NE(result.out.find("SEALANE_AEAD=openssl\n"), std::string::npos);
  EXPECT_NE(result.out.find("OUTSIDE=new\n"), std::string::npos);
  EXPECT_NE(result.out.find("PATH="), std::string::npos);
}

TEST(RunProgram, EndsAProgramThatTakesTooLong) {
  const ProgramResult result =
      run_program({"sh", "-c", "echo begun; sleep 100; echo never"},
                  {.environment = {}, .input = {}, .limit = std::chrono::milliseconds(200)});
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_EQ(result.out.find("never"), std::string::npos);
}

TEST(RunProgram, ThrowsIfThereIsNoSuchProgram) {
  EXPECT_THROW(run_program({"/no/such/program"}), std::system_error);
}

}  // namespace
}  // namespace sealane::test
