// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane estimate, validate and report as their users see them.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

ProgramResult sealane(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), SEALANE_PROGRAM);
  return run_program(arguments);
}

// A directory of the test's own: tests run side by side.
class Directory {
 public:
  Directory() {
    std::string pattern = testing::TempDir() + "/estimate-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    path_ = pattern;
  }
  ~Directory() { std::filesystem::remove_all(path_); }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(*this / name) << content;
    return *this / name;
  }

 private:
  std::string path_;
};

std::string shipped_platform() {
  const std::string program = SEALANE_PROGRAM;
  std::ifstream file(program.substr(0, program.rfind('/')) +
                     "/../share/sealane/platforms/h100-tdx.toml");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string platform_without(const std::string& key) {
  std::string text = shipped_platform();
  const size_t at = text.find(key);
  return text.erase(at, text.find('\n', at) - at + 1);
}

struct WrongUse {
  std::string name;
  std::vector<std::string> arguments;  // "@x" is the file x below
  std::string says;
  std::vector<std::pair<std::string, std::string>> files{};
};

class EstimateWrongUse : public testing::TestWithParam<WrongUse> {};

TEST_P(EstimateWrongUse, IsOneLineExitTwoAndNoFile) {
  const Directory directory;
  for (const auto& [name, content] : GetParam().files) directory.write(name, content);
  std::vector<std::string> arguments = GetParam().arguments;
  for (std::string& word : arguments) {
    if (word.starts_with("@")) word = directory / word.substr(1);
  }
  const std::string json = directory / "never.json";
  if (arguments.front() == "estimate") arguments.insert(arguments.end(), {"--json", json});
  const ProgramResult result = sealane(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(GetParam().says), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(json));
}

constexpr const char* kApiHeader = "Start (ns),Duration (ns),Name,CorrID,Tid\n";

INSTANTIATE_TEST_SUITE_P(
    Cli, EstimateWrongUse,
    testing::Values(
        WrongUse{"nothing", {"estimate"}, "nothing to estimate"},
        WrongUse{"workload", {"estimate", "--workload", "flexgem"}, "did you mean 'flexgen'?"},
        WrongUse{"model",
                 {"estimate", "--workload", "vllm", "--model", "opt-30"},
                 "did you mean 'opt-30b'?"},
        WrongUse{"ddp_model", {"estimate", "--workload", "ddp", "--model", "gpt2xl"}, "'gpt2-xl'?"},
        WrongUse{"platform",
                 {"estimate", "--workload", "vllm", "--platform", "h100-sxn"},
                 "did you mean 'h100-sxm'?"},
        WrongUse{"policy",
                 {"estimate", "--workload", "vllm", "--policy", "stok"},
                 "did you mean 'stock'?"},
        WrongUse{"ddp_policy",
                 {"estimate", "--workload", "ddp", "--policy", "pipellm"},
                 "there are: off, study, buckets, stock, sealane"},
        WrongUse{"foreign_flag",
                 {"estimate", "--workload", "flexgen", "--rate", "2"},
                 "--rate means nothing to 'flexgen', which reads: --batch"},
        WrongUse{"both", {"estimate", "--workload", "vllm", "some.trace"}, "not both"},
        WrongUse{"fabric", {"estimate", "--workload", "ddp", "--fabric", "ncl"}, "'nccl'?"},
        WrongUse{"machines_of_no_fabric",
                 {"estimate", "--workload", "ddp", "--machines", "8"},
                 "--machines is for --fabric nccl"},
        WrongUse{"gpus_over_nccl",
                 {"estimate", "--workload", "ddp", "--fabric", "nccl", "--gpus", "8"},
                 "--gpus means nothing to --fabric nccl"},
        WrongUse{"no_gpus", {"estimate", "--workload", "ddp", "--gpus", "0"}, "--gpus: 0 is not"},
        WrongUse{
            "link", {"estimate", "--workload", "ddp", "--link", "nvlnk"}, "did you mean 'nvlink'?"},
        WrongUse{"too_large",
                 {"estimate", "--workload", "decode", "--model", "opt-175b"},
                 "GB of GPU memory, the platform has"},
        WrongUse{"too_large_for_the_host",
                 {"estimate", "--workload", "flexgen", "--model", "opt-175b", "--batch", "2000",
                  "--kv-on-gpu", "0"},
                 "GB of host memory, the platform has"},
        WrongUse{"platform_key",
                 {"estimate", "--workload", "vllm", "--platform", "@x.toml"},
                 "x.toml:83: unknown key 'gpu.speed_of_light'",
                 {{"x.toml", shipped_platform() + "speed_of_light = [1, \"x\"]\n"}}},
        WrongUse{"platform_lacks",
                 {"estimate", "--workload", "vllm", "--platform", "@x.toml"},
                 "x.toml:1: missing key 'gpu.kernel_slowdown'",
                 {{"x.toml", platform_without("kernel_slowdown")}}},
        WrongUse{"cut_off",
                 {"estimate", "@x_cuda_api_trace.csv"},
                 "x_cuda_api_trace.csv:2: the row has 3 fields",
                 {{"x_cuda_api_trace.csv", std::string(kApiHeader) + "1,2,cudaMemcpy\n"},
                  {"x_cuda_gpu_trace.csv", "Start (ns)\n"}}},
        WrongUse{"negative",
                 {"estimate", "@x"},
                 "x_cuda_api_trace.csv:3: 'Duration (ns)' is negative",
                 {{"x_cuda_api_trace.csv",
                   std::string(kApiHeader) + "1,2,cudaMemcpy,3,4\n5,-2,cudaMemcpy,6,4\n"},
                  {"x_cuda_gpu_trace.csv", "Start (ns)\n"}}},
        WrongUse{"trace",
                 {"estimate", "@x.trace"},
                 "x.trace:2:",
                 {{"x.trace", "sealane-trace 1\nlaunch s1 5 t1\n"}}},
        WrongUse{"no_trace", {"estimate", "/nonexistent"}, "/nonexistent: cannot be read"},
        WrongUse{"report_not_json",
                 {"report", "@x.json", "-o", "@r.html"},
                 "x.json:3: not JSON",
                 {{"x.json", "{\n\"kind\": \"estimate\",\n"}}},
        WrongUse{"report_nothing",
                 {"report", "@x.json", "-o", "@r.html"},
                 "x.json: nothing to draw",
                 {{"x.json", "{\"a\": 1}"}}},
        WrongUse{"report_no_file", {"report", "/nonexistent", "-o", "@r.html"}, "cannot be read"},
        WrongUse{"too_few_draws",
                 {"estimate", "--workload", "ddp", "--draws", "3"},
                 "'3' is neither 0 nor a number from 9 to 1000"},
        WrongUse{"graphs",
                 {"estimate", "--workload", "decode", "--graphs", "ful"},
                 "--graphs: unknown 'ful'; did you mean 'full'?"},
        WrongUse{"fleet_of_ddp", {"estimate", "--workload", "ddp", "--fleet"}, "--fleet means"},
        WrongUse{"price", {"estimate", "--workload", "decode", "--gpu-price", "-1"}, "--gpu-price"},
        WrongUse{"blind_without_manifest",
                 {"validate", "--blind", "/nonexistent"},
                 "/nonexistent/manifest.toml"},
        WrongUse{"blind_and_data",
                 {"validate", "--blind", "/nonexistent", "--data", "x"},
                 "--data means nothing to --blind"},
        WrongUse{"validate_data", {"validate", "--data", "/nonexistent"}, "no NAME-off_cuda"}),
    [](const auto& tested) { return tested.param.name; });

TEST(CliEstimate, ListsWhatThereIs) {
  const ProgramResult result = sealane({"estimate", "--list"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* name : {"h100-sxm", "b200-tdx", "local", "flexgen", "kv-restore", "ddp",
                           "opt-175b", "llama-3-70b", "gpt2-xl", "145 buckets"}) {
    EXPECT_NE(result.out.find(name), std::string::npos) << name;
  }
}

TEST(CliEstimate, JsonHasWhatProgramsNeed) {
  const ProgramResult result = sealane(
      {"estimate", "--workload", "decode", "--steps", "20", "--concurrency", "4", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["workload"], "decode");
  EXPECT_EQ(json["platform"], "h100-nvl-tdx");
  EXPECT_EQ(json["options"]["concurrency"], "4");
  for (const char* policy : {"off", "stock", "parallel", "pipellm", "sealane"}) {
    for (const char* key : {"time_s", "throughput", "unit", "loss_pct", "slowdown", "hit_rate",
                            "messages", "sealed_bytes"}) {
      EXPECT_TRUE(json["policies"][policy].contains(key)) << policy << " " << key;
    }
  }
  EXPECT_GT(json["policies"]["stock"]["loss_pct"], json["policies"]["sealane"]["loss_pct"]);
}

// A tiny part is a nought of as many digits as the others, and not less than nothing.
TEST(CliEstimate, FiguresThatAreNearlyNothingAreNoughts) {
  const ProgramResult shown = sealane({"estimate", "--workload", "decode", "--draws", "0",
                                       "--gpu-price", "3", "--core-price", "0.05"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_NE(shown.out.find("price of a million tokens"), std::string::npos) << shown.out;
  EXPECT_EQ(shown.out.find(" -0.0"), std::string::npos) << shown.out;
  EXPECT_EQ(shown.out.find("e-0"), std::string::npos) << shown.out;
}

// Cores that seal have a price, and GPU time that is won has one.
TEST(CliEstimate, PricesSayWhetherCoresArePaidBack) {
  const std::vector<std::string> words{
      "estimate",     "--workload", "flexgen",     "--model", "opt-13b",      "--steps", "1",
      "--draws",      "9",          "--gpu-price", "4",       "--core-price", "0.05",    "--policy",
      "stock,sealane"};
  const ProgramResult shown = sealane(words);
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_NE(shown.out.find("price of a million tokens"), std::string::npos) << shown.out;
  std::vector<std::string> more = words;
  more.insert(more.end(), {"--json", "-"});
  const auto json = nlohmann::json::parse(sealane(more).out);
  const auto& prices = json["prices"]["policies"];
  const double off = prices["off"]["gpus"];
  EXPECT_NEAR(off, 4.0 / 3600 * 1e6 / json["policies"]["off"]["throughput"].get<double>(), 1e-9);
  EXPECT_EQ(prices["off"]["cores"], 0);
  EXPECT_GT(prices["sealane"]["cores"], 0);
  EXPECT_LT(prices["sealane"]["gpus"].get<double>() + prices["sealane"]["cores"].get<double>(),
            prices["stock"]["gpus"].get<double>());
  const ProgramResult step =
      sealane({"estimate", "--workload", "ddp", "--gpu-price", "4", "--core-price", "0.05"});
  EXPECT_NE(step.out.find("price of a step"), std::string::npos) << step.out;
  const auto trained = nlohmann::json::parse(
      sealane({"estimate", "--workload", "ddp", "--gpu-price", "4", "--json", "-"}).out);
  for (const auto& priced : {prices, trained["prices"]["policies"]}) {
    for (const auto& [policy, price] : priced.items()) {
      ASSERT_TRUE(price.contains("together_80")) << policy << ": no row without its interval";
      EXPECT_LE(price["together_80"][0], price["together"]) << policy;
      EXPECT_GE(price["together_80"][1], price["together"]) << policy;
      EXPECT_LT(price["together_80"][0], price["together_80"][1]) << policy;
    }
  }
}

TEST(CliEstimate, AFleetSaysHowManyCoresAreEnough) {
  const Directory directory;
  const std::string file = directory / "fleet.json";
  const ProgramResult shown =
      sealane({"estimate", "--workload", "decode", "--steps", "10", "--fleet", "--policy",
               "stock,parallel,pipellm,sealane", "--platform", "h100-tdx", "--json", file});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_NE(shown.out.find("cores for each GPU"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("(80 %: "), std::string::npos) << shown.out;
  std::istringstream lines(shown.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  std::ifstream in(file);
  const auto json = nlohmann::json::parse(in);
  EXPECT_GT(json["fleet"]["points"].size(), 4u);
  EXPECT_EQ(json["fleet"]["points"][0]["cores_per_gpu"], 1);
  for (const auto& point : json["fleet"]["points"]) {
    for (const char* policy : {"stock", "parallel", "pipellm", "sealane"}) {
      EXPECT_TRUE(point["loss_pct_80"].contains(policy)) << "no row without its interval";
    }
  }
  const std::string page = directory / "page.html";
  EXPECT_EQ(sealane({"report", file, "-o", page}).exit_code, 0);
}

// What was measured once need not be measured again.
TEST(CliEstimate, APlatformCanBeKept) {
  const Directory directory;
  const std::string file = directory / "kept.toml";
  const std::vector<std::string> words{"estimate", "--workload", "decode", "--steps", "5",
                                       "--draws",  "0",          "--json", "-",       "--platform"};
  std::vector<std::string> first = words;
  first.insert(first.end(), {"b200-tdx", "--save-platform", file});
  std::vector<std::string> again = words;
  again.push_back(file);
  const auto before = nlohmann::json::parse(sealane(first).out);
  const ProgramResult result = sealane(again);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["policies"], before["policies"]);
}

TEST(CliEstimate, TraceOpensInPerfetto) {
  const Directory directory;
  const std::string path = directory / "run.trace.json";
  const ProgramResult result = sealane({"estimate", "--workload", "decode", "--steps", "5",
                                        "--policy", "stock,sealane", "--trace", path});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("SIMULATED: decode"), std::string::npos) << result.out;
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  ASSERT_TRUE(json["traceEvents"].is_array());
  size_t complete = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++complete;
    EXPECT_GT(event["dur"].get<double>(), 0);
  }
  EXPECT_GT(complete, 20u);
}

// The prediction lies in its interval, and surer numbers make that narrower.
TEST(Estimate, EveryPredictionHasItsInterval) {
  const Directory directory;
  std::string text = shipped_platform();
  for (size_t at = 0; (at = text.find("\"]", at)) != std::string::npos; at += 2) {
    const size_t begin = text.rfind('\n', at) + 1;
    const std::string line = text.substr(begin, at - begin);
    const std::string key = line.substr(0, line.find(' '));
    if (key.ends_with("_us") || key.ends_with("_per_s")) text.replace(at, 2, "\", 0]");
  }
  const std::string surer = directory.write("surer.toml", text);
  const auto stock = [&](const std::string& workload, const std::string& platform) {
    std::vector<std::string> arguments{"estimate", "--workload", workload, "--platform", platform,
                                       "--policy", "off,stock",  "--json", "-"};
    if (workload == "decode") arguments.insert(arguments.end(), {"--steps", "5"});
    const ProgramResult result = sealane(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out)["policies"]["stock"];
  };
  const auto width = [](const nlohmann::json& row) {
    return row["slowdown_80"][1].get<double>() - row["slowdown_80"][0].get<double>();
  };
  for (const std::string workload : {"decode", "ddp"}) {
    const nlohmann::json row = stock(workload, "h100-tdx");
    EXPECT_LT(row["slowdown_80"][0], row["slowdown"]) << workload;
    EXPECT_GT(row["slowdown_80"][1], row["slowdown"]) << workload;
    EXPECT_LT(width(stock(workload, surer)), width(row)) << workload;
  }
  const ProgramResult none =
      sealane({"estimate", "--workload", "ddp", "--draws", "0", "--json", "-"});
  EXPECT_FALSE(nlohmann::json::parse(none.out)["policies"]["stock"].contains("slowdown_80"));
}

TEST(CliEstimate, TrainingSaysWhoSealsAndWhatItNeeds) {
  const ProgramResult result = sealane({"estimate", "--workload", "ddp", "--model", "gpt2-xl"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("16 cores per machine at 6.8 GB/s each"), std::string::npos);
  EXPECT_NE(result.out.find("for 1.15x of 'off' each would need"), std::string::npos);
  EXPECT_NE(result.out.find("41.60x"), std::string::npos) << result.out;
}

TEST(CliEstimate, TrainingOverNcclSaysHowManyCoresAreEnoughAndWhatWasAssumed) {
  const ProgramResult result = sealane({"estimate", "--workload", "ddp", "--fabric", "nccl"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("over NCCL, 8 machines of 8 x"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("cores per machine are enough for 1.15x"), std::string::npos);
  EXPECT_NE(result.out.find("\n    1024  "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("wireguard carries 1.25 GB/s"), std::string::npos) << result.out;
}

// Cores and buckets, in one sentence, whether 25 MiB can do it or not.
TEST(CliEstimate, TrainingOverNcclSaysWhatToBuyAndWhatToSet) {
  for (const std::string machines : {"8", "64", "1024"}) {
    const ProgramResult result = sealane({"estimate", "--workload", "ddp", "--fabric", "nccl",
                                          "--machines", machines, "--draws", "0"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(std::regex_search(
        result.out,
        std::regex("[0-9]+ cores per machine are enough for 1.15x of 'off' with buckets\\s+"
                   "of [0-9]+ MiB\\s+[(]--bucket [0-9]+M\\s+--workers [0-9]+[)];")))
        << result.out;
  }
}

// What a planner would buy by: every policy, every number of machines, and the cores.
TEST(CliEstimate, TrainingOverNcclHasIntervalsToo) {
  const auto run = [](std::vector<std::string> more) {
    std::vector<std::string> words{"estimate", "--workload", "ddp", "--fabric", "nccl"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult result = sealane(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const auto json = nlohmann::json::parse(run({"--json", "-"}));
  for (const std::string policy : {"plain", "tls", "wireguard", "sealane"}) {
    for (const auto& point : json["scaling"]) {
      if (point["gpus"] <= 8) continue;  // one machine: nothing leaves it
      EXPECT_LE(point["slowdown_80"][policy][0], point[policy]) << policy;
      EXPECT_GT(point["slowdown_80"][policy][1], point[policy]) << policy;
    }
    EXPECT_LT(json["policies"][policy]["slowdown_80"][0], json["policies"][policy]["slowdown"]);
  }
  EXPECT_LT(json["needed_workers_80"][0], json["needed_workers"]);
  EXPECT_GT(json["needed_workers_80"][1], json["needed_workers"]);

  const auto width = [](const nlohmann::json& of) {
    const auto& range = of["policies"]["wireguard"]["slowdown_80"];
    return range[1].get<double>() - range[0].get<double>();
  };
  const auto known = nlohmann::json::parse(run({"--tunnel-gb-per-s", "1.25", "--json", "-"}));
  EXPECT_LT(width(known), width(json)) << "what was given is known";

  std::istringstream lines(run({}));
  size_t ranges = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    ranges += line.find("80 %") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(ranges, 4u) << "cores, policies, machines, and what it means";
}

// What to measure first: numbers that decide, and none that has nothing to do with it.
TEST(CliEstimate, WhySaysWhichNumbersItRestsOn) {
  const auto names = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"estimate", "--why", "--draws", "0"});
    const ProgramResult shown = sealane(words);
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_NE(shown.out.find("\nrests on "), std::string::npos) << shown.out;
    std::istringstream lines(shown.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
    words.insert(words.end(), {"--json", "-"});
    std::vector<std::string> found;
    const auto json = nlohmann::json::parse(sealane(words).out);
    for (const auto& each : json["rests_on"]) found.push_back(each["name"]);
    return found;
  };
  const auto has = [](const std::vector<std::string>& all, const std::string& name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  const std::vector<std::string> decode{"--workload", "decode", "--steps",    "5",
                                        "--policy",   "stock",  "--platform", "h100-tdx"};
  EXPECT_TRUE(has(names(decode), "--host-us"));
  EXPECT_FALSE(has(names(decode), "guard.rewrite_us_per_mib"));
  std::vector<std::string> given = decode;
  given.insert(given.end(), {"--host-us", "1000"});
  EXPECT_FALSE(has(names(given), "--host-us")) << "what was given is known";

  const auto nccl = names({"--workload", "ddp", "--fabric", "nccl"});
  EXPECT_EQ(nccl.front(), "tunnel_gb_per_s") << "it moves wireguard, and that most";
  EXPECT_TRUE(has(nccl, "host.fast_aead_gb_per_s"));
  const std::string shown =
      sealane({"estimate", "--workload", "ddp", "--fabric", "nccl", "--why"}).out;
  const std::string why = shown.substr(shown.find("\nrests on "));
  EXPECT_NE(why.find("host.fast_aead_gb_per_s"), std::string::npos) << why;
  EXPECT_EQ(why.find("tunnel"), std::string::npos) << "it moves neither of the two shown" << why;
}

TEST(CliEstimate, ReadsATraceOfItsOwnFormat) {
  const Directory directory;
  const std::string trace =
      directory.write("good.trace",
                      "sealane-trace 1\n"
                      "create context c1 t1\n"
                      "create stream s1 c1 blocking t1\n"
                      "copy h2d s1 0x200000 0x7f0000000000 4194304 pinned async t1\n"
                      "launch s1 5000 t1\n"
                      "sync stream s1 t1\n");
  const ProgramResult result = sealane({"estimate", trace});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("slowdown"), std::string::npos) << result.out;
}

class Report : public testing::Test {
 protected:
  // A page of everything that can be drawn.
  std::string make() {
    const std::string serving = directory_ / "serving.json";
    const std::string training = directory_ / "training.json";
    const std::string bench = directory_.write(
        "bench.json",
        R"({"rows":[{"op":"allreduce","bytes":65536,"system":"sealane","mode":"sealed",)"
        R"("busbw_gb_s":2.5,"time_us":26.0},{"op":"allreduce","bytes":1048576,"system":"sealane",)"
        R"("mode":"sealed","busbw_gb_s":3.5,"time_us":300.0}]})");
    const std::string checks = directory_.write(
        "checks.json",
        R"({"kind":"validation","checks":[{"group":"a","what":"</script><b>","unit":"%",)"
        R"("published":[1,2],"predicted":1.5,"error":0,"error_unit":"points","calibrated":false,)"
        R"("source":"s","note":""}],"notes":["n"]})");
    const std::string study = directory_.write(
        "study.json",
        R"({"study":"ddp","differs":"<b>","rows":[{"model":"gpt","backend":"sealane",)"
        R"("mode":"sealed","ranks":4,"bucket_mb":25,"iteration_ms":9,"compute_ms":8,"comm_ms":2,)"
        R"("sealed_messages":7,"sealed_bytes":4096,"slowdown_vs_plain":1.1,)"
        R"("slowdown_vs_gloo":0.9}],"published":[{"model":"m","ranks":4,"slowdown":8.68}]})");
    EXPECT_EQ(sealane({"estimate", "--workload", "decode", "--steps", "10", "--policy",
                       "stock,engine,async,parallel,sealane", "--json", serving})
                  .exit_code,
              0);
    EXPECT_EQ(sealane({"estimate", "--workload", "ddp", "--json", training}).exit_code, 0);
    const std::string page = directory_ / "page.html";
    const ProgramResult result =
        sealane({"report", serving, training, bench, checks, study, "-o", page});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return page;
  }

  Directory directory_;
};

TEST_F(Report, IsOneSelfContainedFile) {
  std::ifstream file(make());
  std::ostringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  EXPECT_GT(page.size(), 200'000u) << "the chart library is not inside";
  for (const char* outside : {"src=\"", "href=\"", "@import", "url("}) {
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  }
  EXPECT_EQ(page.find("</script><b>"), std::string::npos) << "data may end the script";
}

// A browser draws it without a complaint.
TEST_F(Report, IsDrawnByABrowser) {
  if (run_program({"sh", "-c", "command -v chromium"}).exit_code != 0) {
    GTEST_SKIP() << "no chromium here: install it to have the page drawn";
  }
  const std::string profile = directory_ / "chromium";
  const ProgramResult result = run_program(
      {"chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + profile,
       "--enable-logging=stderr", "--dump-dom", "--virtual-time-budget=4000", "file://" + make()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err.find("CONSOLE"), std::string::npos) << result.err;
  const size_t at = result.out.find("data-charts=\"");
  ASSERT_NE(at, std::string::npos) << "the script did not reach its end: " << result.err;
  EXPECT_GE(std::stoi(result.out.substr(at + 13)), 10) << "charts are missing";
}

}  // namespace
}  // namespace sealane::test
