// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do the examples run on the emulated GPU as a user would start them, with the same results in both
// APIs and both modes, every byte sealed in confidential mode, and no wrong result unnoticed?

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

struct Example {
  std::string program;
  std::vector<std::string> arguments;
  std::string name() const {
    std::string out = program;
    for (const std::string& argument : arguments) out += ' ' + argument;
    return out;
  }
};

void PrintTo(const Example& example, std::ostream* out) { *out << example.name(); }

const std::vector<Example> kExamples = {
    {"layer_swap", {"--width", "512", "--steps", "3"}},
    {"layer_swap", {"--width", "256", "--steps", "6", "--order", "random", "--rewrite", "60"}},
    {"kv_swap", {"--layers", "3", "--steps", "6", "--token-words", "512"}},
    {"kv_swap", {"--mode", "lifo", "--requests", "8", "--steps", "96", "--token-words", "256"}},
    {"decode_loop", {"--steps", "60"}},
    {"mini_llm", {"--schedule", "flexgen", "--hidden", "128", "--steps", "6"}},
    {"mini_llm",
     {"--schedule", "vllm", "--hidden", "64", "--requests", "12", "--pool-blocks", "10"}},
    {"mini_llm", {"--schedule", "peft", "--hidden", "128", "--steps", "3"}},
};

struct Outcome {
  ProgramResult result;
  json figures;
  json truth;
};

class Scratch {
 public:
  Scratch() {
    std::string name = std::filesystem::temp_directory_path() / "sealane-examples-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string file(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

Outcome run(const Example& example, const std::string& suffix, const std::string& cc,
            const std::vector<std::string>& flags = {}) {
  const Scratch scratch;
  std::vector<std::string> argv = {SEALANE_PROGRAM,      "run", "--emulate", "--cc", cc, "--truth",
                                   scratch.file("truth")};
  argv.insert(argv.end(), flags.begin(), flags.end());
  argv.insert(argv.end(), {"--", SEALANE_EXAMPLES_DIR "/" + example.program + suffix});
  argv.insert(argv.end(), example.arguments.begin(), example.arguments.end());
  argv.insert(argv.end(), {"--json", scratch.file("figures")});
  Outcome out;
  out.result = run_program(argv);
  std::ifstream figures(scratch.file("figures"));
  if (figures) out.figures = json::parse(figures, nullptr, false);
  std::ifstream truth(scratch.file("truth"));
  if (truth) out.truth = json::parse(truth, nullptr, false);
  return out;
}

class Examples : public testing::TestWithParam<Example> {};

TEST_P(Examples, GiveTheSameResultInBothApisAndBothModes) {
  std::string hash;
  for (const std::string suffix : {"", "_drv"}) {
    for (const std::string cc : {"off", "on"}) {
      SCOPED_TRACE(GetParam().name() + suffix + " cc " + cc);
      const Outcome done = run(GetParam(), suffix, cc);
      ASSERT_EQ(done.result.exit_code, 0) << done.result.err;
      EXPECT_EQ(done.figures.at("api"), suffix.empty() ? "runtime" : "driver");
      EXPECT_GT(done.figures.at("total_s").get<double>(), 0);
      EXPECT_GT(done.figures.at("tokens_per_s").get<double>(), 0);
      if (hash.empty()) hash = done.figures.at("hash");
      EXPECT_EQ(done.figures.at("hash"), hash);
      for (const char* direction : {"to_device", "to_host"}) {
        const json& lane = done.truth.at(direction);
        EXPECT_GT(lane.at("bytes").get<uint64_t>(), 0u);
        const uint64_t sealed = cc == "on" ? lane.at("bytes").get<uint64_t>() : 0;
        EXPECT_EQ(lane.at("sealed_bytes").get<uint64_t>(), sealed) << direction;
        EXPECT_EQ(lane.at("verified_bytes").get<uint64_t>(), sealed) << direction;
      }
      EXPECT_EQ(done.truth.at("unknown_launches").get<uint64_t>(), 0u);
    }
  }
}

// A message that was tampered with is never computed with.
TEST_P(Examples, EndWithOneLineWhenAMessageWasTamperedWith) {
  for (const char* attack : {"flip@6", "drop@5", "flip@2:to_host"}) {
    SCOPED_TRACE(attack);
    const Outcome done = run(GetParam(), "", "on", {"--adversary", attack});
    EXPECT_EQ(done.result.exit_code, 1);
    EXPECT_NE(done.result.err.find(GetParam().program + ": "), std::string::npos)
        << done.result.err;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Examples, testing::ValuesIn(kExamples),
                         [](const auto& test) { return std::to_string(test.index); });

// Steps before the clock are steps like any other: same results, less of them measured.
TEST(Warmup, ChangesWhatIsMeasuredAndNotWhatIsComputed) {
  struct Case {
    Example all;
    std::string warmup;
    std::string steps;  // empty: the warm-up is part of them
  };
  const std::vector<Case> cases = {
      {{"layer_swap", {"--width", "128", "--steps", "5", "--order", "random", "--rewrite", "50"}},
       "2",
       "3"},
      {{"kv_swap", {"--layers", "3", "--steps", "6", "--token-words", "256"}}, "4", "2"},
      {{"kv_swap", {"--mode", "lifo", "--requests", "8", "--steps", "96", "--token-words", "128"}},
       "30",
       ""},
      {{"decode_loop", {"--steps", "40"}}, "30", "10"},
      {{"mini_llm", {"--schedule", "flexgen", "--hidden", "64", "--steps", "6"}}, "2", "4"},
      {{"mini_llm", {"--schedule", "peft", "--hidden", "64", "--steps", "3"}}, "1", "2"},
      {{"mini_llm",
        {"--schedule", "vllm", "--hidden", "64", "--requests", "12", "--pool-blocks", "10"}},
       "20",
       ""},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.all.name());
    Example warmed = one.all;
    warmed.arguments.insert(warmed.arguments.end(), {"--warmup", one.warmup});
    if (!one.steps.empty()) {
      warmed.arguments.insert(warmed.arguments.end(), {"--steps", one.steps});
    }
    const Outcome whole = run(one.all, "", "on");
    const Outcome part = run(warmed, "", "on");
    ASSERT_EQ(part.result.exit_code, 0) << part.result.err;
    EXPECT_EQ(part.figures.at("hash"), whole.figures.at("hash"));
    const auto bytes = [](const Outcome& outcome, const char* range) {
      return outcome.truth.at(range).at("to_host").at("bytes").get<uint64_t>();
    };
    EXPECT_EQ(part.truth.at("to_host").at("bytes"), whole.truth.at("to_host").at("bytes"));
    EXPECT_LT(bytes(part, "profiled"), bytes(whole, "profiled"));
    EXPECT_GT(bytes(part, "profiled"), 0u);
  }
}

// Steps padded to the size of a graph compute what steps of their own size compute.
TEST(Graphs, ChangeHowKernelsAreLaunchedAndNotWhatTheyCompute) {
  Example example{"mini_llm",
                  {"--schedule", "vllm", "--hidden", "64", "--requests", "12", "--pool-blocks",
                   "10", "--graphs", "on"}};
  const Outcome with = run(example, "", "on");
  example.arguments.back() = "off";
  const Outcome without = run(example, "", "on");
  ASSERT_EQ(with.result.exit_code, 0) << with.result.err;
  ASSERT_EQ(without.result.exit_code, 0) << without.result.err;
  EXPECT_EQ(with.figures.at("hash"), without.figures.at("hash"));
  EXPECT_EQ(with.truth.at("launches"), without.truth.at("launches"));
  EXPECT_GT(with.truth.at("to_device").at("bytes"), without.truth.at("to_device").at("bytes"));
}

// ---- ddp_ring: a process per GPU ----

// Gradients of 1 MiB, and of 18 MiB, which is more than the windows on GPU memory hold.
const std::vector<std::vector<std::string>> kTrainings = {
    {"--inputs", "4096"}, {"--inputs", "73728", "--samples", "2", "--steps", "2"}};

TEST(DdpRing, EveryRankEndsWithTheWeightsTheHostComputes) {
  for (const auto& training : kTrainings) {
    for (const std::string algorithm : {"hub", "ring", "direct"}) {
      std::string hash;
      for (const std::string cc : {"off", "on"}) {
        std::vector<std::string> arguments = training;
        arguments.insert(arguments.end(), {"--algorithm", algorithm});
        const std::string suffix = cc == "on" ? "" : "_drv";
        const Outcome done = run({"ddp_ring", arguments}, suffix, cc, {"--gpus", "3"});
        ASSERT_EQ(done.result.exit_code, 0) << algorithm << ": " << done.result.err;
        EXPECT_EQ(done.figures.at("ranks").get<int>(), 3);
        EXPECT_LT(done.figures.at("last_loss").get<double>(),
                  done.figures.at("first_loss").get<double>());
        EXPECT_LE(done.figures.at("comm_memory_bytes").get<uint64_t>(), uint64_t{32} << 20);
        if (hash.empty()) hash = done.figures.at("hash");
        EXPECT_EQ(done.figures.at("hash"), hash) << "it matters how the bytes travelled";
      }
    }
  }
}

// The gradients go to the host once: 1 MiB in messages of up to 1 MiB, after what the set-up sends.
TEST(DdpRing, ATamperedGradientReachesNobody) {
  for (const char* attack : {"flip@1:to_host", "flip@2:to_host", "drop@4"}) {
    SCOPED_TRACE(attack);
    const Outcome done = run({"ddp_ring", {}}, "", "on", {"--gpus", "2", "--adversary", attack});
    EXPECT_EQ(done.result.exit_code, 1);
    EXPECT_NE(done.result.err.find("ddp_ring: "), std::string::npos) << done.result.err;
    EXPECT_TRUE(done.figures.is_null()) << "a result was reported";
  }
}

TEST(ExamplesUsage, WrongArgumentsAreOneLineAndExitTwo) {
  const std::vector<Example> wrong = {
      {"layer_swap", {"--layers", "many"}}, {"layer_swap", {"--no-such-option", "1"}},
      {"kv_swap", {"--mode", "sideways"}},  {"kv_swap", {"--mode", "lifo", "--pool-blocks", "1"}},
      {"decode_loop", {"--steps"}},         {"mini_llm", {"--hidden", "100"}},
      {"ddp_ring", {"--algorithm", "bus"}}, {"kv_swap", {"--mode", "lifo", "--warmup", "9999"}}};
  for (const Example& example : wrong) {
    SCOPED_TRACE(example.name());
    std::vector<std::string> argv = {SEALANE_PROGRAM, "run", "--emulate", "--",
                                     SEALANE_EXAMPLES_DIR "/" + example.program};
    argv.insert(argv.end(), example.arguments.begin(), example.arguments.end());
    const ProgramResult result = run_program(argv);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(example.program + ": "), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace sealane::test
