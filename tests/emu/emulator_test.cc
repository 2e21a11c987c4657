// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does the emulated GPU behave as it says, under every switch? Each test runs a small CUDA program
// in a process of its own, because a driver reads its configuration once.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>

#include <string>
#include <vector>

#include "run_probe.h"

namespace sealane::test {
namespace {

using nlohmann::json;

TEST(Emulator, EveryByteIsSealedInConfidentialMode) {
  ProgramResult result;
  const json truth = truth_of("roundtrip", {"SEALANE_EMU_CC=on"}, result);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* way : {"to_device", "to_host"}) {
    EXPECT_GT(truth[way]["bytes"], 9000000);
    EXPECT_EQ(truth[way]["sealed_bytes"], truth[way]["bytes"]);
    EXPECT_EQ(truth[way]["verified_bytes"], truth[way]["bytes"]);
    EXPECT_EQ(truth[way]["positions"], truth[way]["messages"]);
    EXPECT_EQ(truth[way]["rejected"], 0);
  }
}

TEST(Emulator, NothingIsSealedOtherwise) {
  ProgramResult result;
  const json truth = truth_of("roundtrip", {"SEALANE_EMU_CC=off"}, result);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_GT(truth["to_device"]["bytes"], 9000000);
  EXPECT_EQ(truth["to_device"]["messages"], 0);
  EXPECT_EQ(truth["to_host"]["messages"], 0);
}

class SwitchTest : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(SwitchTest, KeepsEveryByte) {
  ProgramResult result;
  const json truth = truth_of("roundtrip", GetParam(), result);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(truth["to_device"]["verified_bytes"], truth["to_device"]["bytes"]);
  EXPECT_EQ(truth["to_host"]["verified_bytes"], truth["to_host"]["bytes"]);
}

INSTANTIATE_TEST_SUITE_P(
    Alone, SwitchTest,
    testing::Values(std::vector<std::string>{"SEALANE_EMU_REACH=dlsym"},
                    std::vector<std::string>{"SEALANE_EMU_REACH=own"},
                    std::vector<std::string>{"SEALANE_EMU_STAGED=on"},
                    std::vector<std::string>{"SEALANE_EMU_AAD=on"},
                    std::vector<std::string>{"SEALANE_EMU_UPDATES=7"},
                    std::vector<std::string>{"SEALANE_EMU_FRESH_CONTEXTS=on"},
                    std::vector<std::string>{"SEALANE_EMU_SEAL_THREAD=on"},
                    std::vector<std::string>{"SEALANE_EMU_CHATTER=3"},
                    std::vector<std::string>{"SEALANE_EMU_QUEUES=1"},
                    std::vector<std::string>{"SEALANE_EMU_MESSAGE=100000"},
                    std::vector<std::string>{"SEALANE_EMU_SLOTS=1"},
                    std::vector<std::string>{"SEALANE_EMU_ROTATE=300000"},
                    std::vector<std::string>{"SEALANE_EMU_PACING=model", "SEALANE_EMU_DILATION=2"},
                    std::vector<std::string>{
                        "SEALANE_EMU_STAGED=on", "SEALANE_EMU_AAD=on", "SEALANE_EMU_UPDATES=3",
                        "SEALANE_EMU_FRESH_CONTEXTS=on", "SEALANE_EMU_SEAL_THREAD=on",
                        "SEALANE_EMU_CHATTER=2", "SEALANE_EMU_QUEUES=1", "SEALANE_EMU_SLOTS=2",
                        "SEALANE_EMU_ROTATE=300000", "SEALANE_EMU_REACH=dlsym"}));

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they refuse RTLD_DEEPBIND
TEST(Emulator, ReachesLibcryptoPastInterposition) {
  const ProgramResult result = probe("roundtrip", {"SEALANE_EMU_REACH=deepbind"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}
#endif

TEST(Emulator, ReachesLibcryptoLinked) {
  const std::string both = std::string(SEALANE_EMU_DIR) + "/linked:" + SEALANE_EMU_DIR;
  const ProgramResult result = probe("roundtrip", {"SEALANE_EMU_REACH=linked"}, both);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(Emulator, RotatesKeysAndTalksToItself) {
  ProgramResult result;
  const json truth =
      truth_of("roundtrip", {"SEALANE_EMU_ROTATE=1000000", "SEALANE_EMU_CHATTER=2"}, result);
  EXPECT_GT(truth["to_device"]["rotations"], 3);
  EXPECT_GT(truth["to_host"]["rotations"], 3);
  EXPECT_GT(truth["to_device"]["own_messages"], 3);
}

class AdversaryTest : public testing::TestWithParam<std::tuple<const char*, const char*, int>> {};

TEST_P(AdversaryTest, IsNoticed) {
  const auto& [attack, direction, message] = GetParam();
  ProgramResult result;
  const json truth = truth_of("attacked",
                              {std::string("SEALANE_EMU_ADVERSARY=") + attack + "@" +
                               std::to_string(message) + ":" + direction},
                              result);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(truth["attacks"], 1);
  EXPECT_EQ(truth[direction]["rejected"], 1);
  EXPECT_EQ(truth["contexts_failed"], 1);
}

// Six messages per copy: the first, one in the middle, the last of a copy, one of the next copy.
INSTANTIATE_TEST_SUITE_P(
    Every, AdversaryTest,
    testing::Combine(testing::Values("flip", "drop", "duplicate", "swap", "truncate", "replay"),
                     testing::Values("to_device", "to_host"), testing::Values(1, 3, 6, 8)));

TEST(Emulator, DevicePointersFault) {
  const ProgramResult result = probe("dereference");
  EXPECT_EQ(result.out, "about to fault\n");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  EXPECT_NE(result.exit_code, 0);
#else
  EXPECT_EQ(result.signal, SIGSEGV);
#endif
}

TEST(Emulator, HasRoomForEighteenContexts) {
  EXPECT_EQ(probe("contexts").out, "18 2\n");
  EXPECT_EQ(probe("contexts", {"SEALANE_EMU_CONTEXTS=3"}).out, "3 2\n");
  EXPECT_EQ(probe("contexts", {"SEALANE_EMU_CC=off"}).out, "40 0\n");
}

class ModeTest : public testing::TestWithParam<const char*> {
 protected:
  std::string mode() const { return std::string("SEALANE_EMU_CC=") + GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Both, ModeTest, testing::Values("on", "off"));

TEST_P(ModeTest, AnswersBadInputWithErrorCodes) {
  const ProgramResult result = probe("errors", {mode()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_P(ModeTest, GatesReleaseAcrossContexts) {
  const ProgramResult result = probe("gate", {mode()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.out, "0\n");
}

TEST_P(ModeTest, EndsCleanlyWithCopiesInFlight) {
  for (int i = 0; i < 5; ++i) {
    const ProgramResult result = probe("exit_in_flight", {mode()});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err << " signal " << result.signal;
    EXPECT_EQ(result.out, "still there\n");
  }
}

TEST_P(ModeTest, IsGoneAfterFork) {
  const ProgramResult result = probe("after_fork", {mode()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_P(ModeTest, CopiesBetweenPeers) {
  ProgramResult result;
  const json truth = truth_of("peers", {mode(), "SEALANE_EMU_GPUS=2"}, result);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(truth["peer_copies"], 1);
  const bool sealed = std::string(GetParam()) == "on";
  EXPECT_EQ(truth["to_host"]["sealed_bytes"], sealed ? 2 * (3 << 20) : 0);
}

TEST_P(ModeTest, ThreadsDoNotDisturbEachOther) {
  const ProgramResult result = probe("stress", {mode(), "SEALANE_EMU_GPUS=2"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(Emulator, RefusesRegistrationInConfidentialModeOnly) {
  EXPECT_EQ(probe("host_registration", {"SEALANE_EMU_CC=on"}).out, "801\n");
  EXPECT_EQ(probe("host_registration", {"SEALANE_EMU_CC=off"}).out, "0\n");
}

TEST(Emulator, MayLackStreamMemoryOperations) {
  EXPECT_EQ(probe("gate", {"SEALANE_EMU_MEMOPS=off"}).out, "801\n");
}

// The first three words are what the device saw, the others what the host did.
TEST(Emulator, MappedMemoryIsStaleInConfidentialModeOnly) {
  EXPECT_EQ(probe("mapped_views", {"SEALANE_EMU_CC=on"}).out, "1 1 2, 0 7\n");
  EXPECT_EQ(probe("mapped_views", {"SEALANE_EMU_CC=off"}).out, "1 2 2, 7 7\n");
}

TEST(Emulator, PageableSourcesDoNotBlockIfTheSwitchSaysSo) {
  const std::vector<std::string> async = {"SEALANE_EMU_CC=on", "SEALANE_EMU_PAGEABLE=async"};
  const ProgramResult result = probe("pageable_behind_host_function", async);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(Emulator, MappedMemoryIsLiveInConfidentialModeIfTheSwitchSaysSo) {
  const std::vector<std::string> live = {"SEALANE_EMU_CC=on", "SEALANE_EMU_MAPPED=live"};
  EXPECT_EQ(probe("mapped_views", live).out, "1 2 2, 7 7\n");
}

TEST(Emulator, PinnedMemoryCannotBeGuardedInConfidentialModeOnly) {
  const std::string on = probe("guarded_memory", {"SEALANE_EMU_CC=on"}).out;
  if (on == "no userfaultfd here\n") GTEST_SKIP() << on;
  EXPECT_EQ(on, "busy\n");
  EXPECT_EQ(probe("guarded_memory", {"SEALANE_EMU_CC=off"}).out, "guarded\n");
}

TEST(Emulator, CanBeDisturbedAtAChosenMoment) {
  ProgramResult result;
  const json truth = truth_of("disturbed", {}, result);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* way : {"to_device", "to_host"}) EXPECT_EQ(truth[way]["rotations"], 2) << way;
  EXPECT_EQ(truth["to_device"]["own_messages"], 1);
  EXPECT_EQ(truth["to_host"]["own_messages"], 0);
  EXPECT_EQ(truth["to_device"]["rejected"], 1);
  EXPECT_EQ(truth["attacks"], 1);
}

TEST(Emulator, SaysOnceWhatItDoesNotSupport) {
  const ProgramResult result = probe("unsupported");
  EXPECT_EQ(result.out, "801 801\n801 801\n801 801\n801 801\n");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 4) << result.err;
  EXPECT_NE(result.err.find("cuTexObjectCreate is not supported"), std::string::npos) << result.err;
}

TEST(Emulator, UsesNoCpuWhenIdle) {
  const ProgramResult result = probe("idle", {"SEALANE_EMU_SEAL_THREAD=on"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_LT(std::stod(result.out), 0.1);  // of half a second: spinning threads would take it all
}

TEST(Emulator, SaysWhatItCannotUnderstand) {
  for (const std::string bad :
       {"SEALANE_EMU_CC=maybe", "SEALANE_EMU_ADVERSARY=bribe@3", "SEALANE_EMU_GPUS=99",
        "SEALANE_EMU_REACH=magic", "SEALANE_EMU_MODEL=gpu.memory_gb_per_s=fast",
        "SEALANE_EMU_DILATION=0", "SEALANE_EMU_KERNELS=/no/such.so"}) {
    const ProgramResult result = probe("roundtrip", {bad});
    EXPECT_EQ(result.exit_code, 1) << bad;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(bad.substr(0, bad.find('='))), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace sealane::test
