// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Programs as people bring them: that choose devices, that have a CUDA runtime of their own, that
// have a sanitizer inside, that run where no thread can be made.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_probe.h"

namespace sealane::test {
namespace {

std::string visible(const std::string& list) {
  return probe("devices", {"SEALANE_EMU_GPUS=3", "CUDA_VISIBLE_DEVICES=" + list}).out;
}

TEST(Programs, SeeTheDevicesThatAreVisible) {
  EXPECT_EQ(probe("devices", {"SEALANE_EMU_GPUS=3"}).out, "3, first on bus 1\n");
  EXPECT_EQ(visible("1"), "1, first on bus 2\n");
  EXPECT_EQ(visible("2,0"), "2, first on bus 3\n");
  EXPECT_EQ(visible("GPU-7365616c-616e-6520-656d-756c61746532"), "1, first on bus 3\n");
  EXPECT_EQ(visible(""), "none\n");
  EXPECT_EQ(visible("7"), "none\n");
}

TEST(Programs, ThatBringARuntimeGetOurs) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a runtime with a sanitizer is not preloaded";
#endif
  const ProgramResult alone = run_program({BRINGS_CUDART});
  EXPECT_EQ(alone.out, "0 devices, error 801\n") << "it would find its own";
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{}, {"--policy", "parallel"}}) {
    std::vector<std::string> words = {SEALANE_PROGRAM, "run", "--emulate"};
    words.insert(words.end(), how.begin(), how.end());
    words.insert(words.end(), {"--", BRINGS_CUDART});
    const ProgramResult result = run_program(words);
    EXPECT_EQ(result.out, "1 devices, error 0\n") << result.err;
    EXPECT_EQ(result.exit_code, 0);
  }
  const ProgramResult printed = run_program({SEALANE_PROGRAM, "run", "--emulate", "--print-env"});
  const ProgramResult result =
      run_program({"sh", "-c", printed.out + "\nexec \"$0\"", BRINGS_CUDART});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

// Linked statically, as nvcc does unless told otherwise: nobody can put ours in its place, and what
// it says itself is a bare 801.
TEST(Programs, ThatHaveARuntimeInsideAreToldOnceWhatToDo) {
  for (const std::vector<std::string>& how : std::vector<std::vector<std::string>>{
           {}, {"--cc", "off"}, {"--policy", "parallel"}, {"--policy", "speculate"}}) {
    std::vector<std::string> words = {SEALANE_PROGRAM, "run", "--emulate"};
    words.insert(words.end(), how.begin(), how.end());
    words.insert(words.end(), {"--", HAS_CUDART});
    const ProgramResult result = run_program(words);
    EXPECT_EQ(result.out, "errors 801, 801\n") << result.err;
    const std::string line = std::string(HAS_CUDART) + " is or contains NVIDIA's CUDA runtime";
    const size_t at = result.err.find(line);
    ASSERT_NE(at, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("is or contains", at + line.size()), std::string::npos) << "once";
    const std::string told = result.err.substr(at, result.err.find('\n', at) - at);
    EXPECT_NE(told.find("nvcc --cudart shared"), std::string::npos) << told;
    EXPECT_NE(told.find("docs/emulator.md"), std::string::npos) << told;
  }
}

TEST(Programs, WithASanitizerStartUnderAPolicy) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the runtime has one itself";
#endif
  for (const char* policy : {"parallel", "speculate"}) {
    const ProgramResult result = run_program(
        {SEALANE_PROGRAM, "run", "--emulate", "--policy", policy, "--", ASAN_CLIENT},
        {.environment = {"ASAN_OPTIONS=detect_leaks=0:protect_shadow_gap=0"}, .input = {}});
    EXPECT_EQ(result.exit_code, 0) << policy << result.out << result.err;
  }
}

TEST(Programs, AreToldThatThereIsNoThread) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers make threads of their own";
#endif
  for (const char* cc : {"SEALANE_EMU_CC=on", "SEALANE_EMU_CC=off"}) {
    const ProgramResult result = probe("no_threads", {cc, std::string("LD_PRELOAD=") + NO_THREADS});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  }
}

TEST(Programs, EndHoweverFewThreadsThereAre) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers make threads of their own";
#endif
  for (const char* cc : {"SEALANE_EMU_CC=on", "SEALANE_EMU_CC=off"}) {
    for (const char* left : {"NO_THREADS_AFTER=1", "NO_THREADS_AFTER=3"}) {
      const ProgramResult result =
          probe("few_threads", {cc, left, std::string("LD_PRELOAD=") + NO_THREADS});
      EXPECT_EQ(result.exit_code, 0) << cc << left << result.out << result.err;
    }
  }
}

}  // namespace
}  // namespace sealane::test
