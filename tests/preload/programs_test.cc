// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do whole programs under the runtime give the results they give without it, is every byte sealed
// by us and verified by the device, is an attack noticed as before, and do programs that have
// nothing to do with GPUs not notice anything?

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

const std::string kAll = "engine,async,parallel,register,speculate";

struct Outcome {
  ProgramResult result;
  json figures;
  json truth;
  std::string notes;  // of a run that is watched
};

json read(const std::string& file) {
  std::ifstream in(file);
  return in ? json::parse(in, nullptr, false) : json();
}

enum class Watched : bool { no, yes };

Outcome run(const Words& example, const Words& flags, Watched watched = Watched::no) {
  std::string scratch = std::filesystem::temp_directory_path() / "sealane-preload-XXXXXX";
  EXPECT_NE(mkdtemp(scratch.data()), nullptr);
  Words argv = {SEALANE_PROGRAM, "run", "--emulate", "--truth", scratch + "/truth"};
  if (watched == Watched::yes) argv.insert(argv.end(), {"--stats", scratch + "/stats"});
  argv.insert(argv.end(), flags.begin(), flags.end());
  argv.insert(argv.end(), {"--", SEALANE_EXAMPLES_DIR "/" + example[0]});
  argv.insert(argv.end(), example.begin() + 1, example.end());
  argv.insert(argv.end(), {"--json", scratch + "/figures"});
  Outcome out;
  out.result = run_program(argv);
  out.figures = read(scratch + "/figures");
  out.truth = read(scratch + "/truth");
  if (watched == Watched::yes) out.notes = read(scratch + "/stats").at("notes").dump();
  std::filesystem::remove_all(scratch);
  return out;
}

const std::vector<Words> kExamples = {
    {"layer_swap", "--width", "512", "--steps", "3"},
    {"layer_swap_drv", "--width", "256", "--steps", "6", "--order", "random", "--rewrite", "60"},
    {"kv_swap", "--layers", "3", "--steps", "6", "--token-words", "512"},
    {"kv_swap", "--mode", "lifo", "--requests", "8", "--steps", "96", "--token-words", "256"},
    {"decode_loop", "--steps", "60"},
    {"decode_loop_drv", "--steps", "60"},
    {"mini_llm", "--schedule", "flexgen", "--hidden", "128", "--steps", "6"},
    {"mini_llm", "--schedule", "vllm", "--hidden", "64", "--steps", "40"},
    {"mini_llm_drv", "--schedule", "peft", "--hidden", "128", "--steps", "3"},
};

class Programs : public testing::TestWithParam<Words> {};

TEST_P(Programs, GiveTheSameResultsAndEveryByteIsOurs) {
  const Outcome stock = run(GetParam(), {});
  ASSERT_EQ(stock.result.exit_code, 0) << stock.result.err;
  const Outcome ours = run(GetParam(), {"--enable", kAll, "--verify", "3"});
  ASSERT_EQ(ours.result.exit_code, 0) << ours.result.err;
  EXPECT_EQ(ours.figures.at("hash"), stock.figures.at("hash"));
  uint64_t sealed = 0;
  for (const char* direction : {"to_device", "to_host"}) {
    const json& lane = ours.truth.at(direction);
    EXPECT_GE(lane.at("bytes"), stock.truth.at(direction).at("bytes"));
    EXPECT_EQ(lane.at("sealed_bytes"), lane.at("verified_bytes"));
    EXPECT_EQ(lane.at("rejected"), 0);
    sealed += lane.at("sealed_bytes").get<uint64_t>();
  }
  EXPECT_EQ(ours.truth.at("answered_bytes"), sealed);
  EXPECT_GT(ours.truth.at("contexts"), stock.truth.at("contexts")) << "no lane was used";
}

TEST_P(Programs, NoticeAnAttackOnTheBus) {
  for (const char* attack : {"flip@6", "drop@7", "swap@5", "flip@3:to_host"}) {
    SCOPED_TRACE(attack);
    const Outcome ours = run(GetParam(), {"--enable", kAll, "--adversary", attack});
    EXPECT_EQ(ours.result.exit_code, 1) << ours.result.err;
    EXPECT_FALSE(ours.result.timed_out);
    EXPECT_NE(ours.result.err.find("(214)"), std::string::npos) << ours.result.err;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Programs, testing::ValuesIn(kExamples),
                         [](const auto& test) { return std::to_string(test.index); });

TEST(Programs, WithoutAGpuDoNotNotice) {
  const ProgramResult python =
      run_program({SEALANE_PROGRAM, "run", "--", "/usr/bin/python3", "-c",
                   "import ctypes, hashlib, ssl\n"
                   "c = ctypes.CDLL('libcrypto.so.3')\n"
                   "new = c.EVP_CIPHER_CTX_new; new.restype = ctypes.c_void_p\n"
                   "gcm = c.EVP_aes_256_gcm; gcm.restype = ctypes.c_void_p\n"
                   "x = ctypes.c_void_p(new()); g = ctypes.c_void_p(gcm())\n"
                   "out = ctypes.create_string_buffer(64); n = ctypes.c_int(); tag = "
                   "ctypes.create_string_buffer(16)\n"
                   "assert c.EVP_EncryptInit_ex(x, g, None, b'k' * 32, b'i' * 12) == 1\n"
                   "assert c.EVP_EncryptUpdate(x, out, ctypes.byref(n), b'hello', 5) == 1\n"
                   "assert c.EVP_EncryptFinal_ex(x, out, ctypes.byref(n)) == 1\n"
                   "assert c.EVP_CIPHER_CTX_ctrl(x, 16, 16, tag) == 1\n"
                   "print(tag.raw.hex(), hashlib.sha256(b'x').hexdigest()[:8], "
                   "ssl.create_default_context().check_hostname)"});
  EXPECT_EQ(python.exit_code, 0) << python.err;
  EXPECT_NE(python.out.find("2d711642 True"), std::string::npos) << python.out;
  EXPECT_EQ(python.err, "");
}

// A batch of 40 copies that continue each other, five times, and one copy each way around it.
json batch_stats(const std::string& enable) {
  std::string stats = std::filesystem::temp_directory_path() / "sealane-batches-XXXXXX";
  const int file = mkstemp(stats.data());
  EXPECT_GE(file, 0);
  close(file);
  const ProgramResult done =
      run_program({SEALANE_PROGRAM, "run", "--emulate", "--enable", enable, "--stats", stats, "--",
                   SEALANE_DRIVER_SUITE, "--gtest_filter=DriverBatch.IsBehind*"});
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  const json out = read(stats);
  std::filesystem::remove(stats);
  return out;
}

TEST(Programs, BatchesAreCarriedAndTheirSmallCopiesTravelTogether) {
  const json together = batch_stats("engine,async,parallel,coalesce");
  EXPECT_EQ(together["to_device"]["carried_copies"], 200) << together.dump();
  EXPECT_GT(together["to_device"]["crossings_saved"], 100);
  const json alone = batch_stats("engine,async,parallel");
  EXPECT_EQ(alone["to_device"]["carried_copies"], 200);
  EXPECT_EQ(alone["to_device"]["crossings_saved"], 0);
  const json passed = batch_stats("engine");
  EXPECT_EQ(passed["to_device"]["copies"], 200);
  EXPECT_EQ(passed["to_device"]["carried_copies"], 0);
}

TEST(Programs, AThousandStartAndEnd) {
  const std::string loop =
      "for i in $(seq 990); do /bin/true || exit 9; done\n"
      "for i in $(seq 10); do " SEALANE_CLIENT " >/dev/null || exit 8; done";
  const ProgramResult done = run_program(
      {SEALANE_PROGRAM, "run", "--emulate", "--enable", kAll, "--", "/bin/sh", "-c", loop});
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

TEST(Programs, PrintEnvIsWhatRunSets) {
  const ProgramResult printed =
      run_program({SEALANE_PROGRAM, "run", "--workers", "3", "--print-env"});
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_NE(printed.out.find("export LD_PRELOAD='"), std::string::npos);
  EXPECT_NE(printed.out.find("export SEALANE_WORKERS='3'"), std::string::npos);
}

}  // namespace
}  // namespace sealane::test
