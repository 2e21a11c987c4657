// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane estimate, validate and report as their users see them.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
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

std::string temporary(const std::string& name, const std::string& content = "") {
  const std::string path = testing::TempDir() + "/estimate-" + name;
  if (content.empty()) {
    std::filesystem::remove(path);
  } else {
    std::ofstream(path) << content;
  }
  return path;
}

std::string shipped_platform() {
  const auto program = std::filesystem::path(SEALANE_PROGRAM).parent_path();
  std::ifstream file(program / "../share/sealane/platforms/h100-tdx.toml");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct WrongUse {
  std::string name;
  std::vector<std::string> arguments;
  std::string says;
};

class EstimateWrongUse : public testing::TestWithParam<WrongUse> {};

TEST_P(EstimateWrongUse, IsOneLineExitTwoAndNoFile) {
  const std::string json = temporary("never.json");
  std::vector<std::string> arguments = GetParam().arguments;
  if (arguments.front() == "estimate") arguments.insert(arguments.end(), {"--json", json});
  const ProgramResult result = sealane(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(GetParam().says), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(json));
}

std::vector<WrongUse> wrong_uses() {
  const std::string platform = shipped_platform();
  const std::string unknown = temporary("unknown.toml", platform + "speed_of_light = [1, \"x\"]\n");
  std::string short_text = platform;
  short_text.erase(short_text.find("kernel_slowdown"),
                   short_text.find('\n', short_text.find("kernel_slowdown")) -
                       short_text.find("kernel_slowdown") + 1);
  const std::string missing = temporary("missing.toml", short_text);
  const std::string api = temporary("cut_cuda_api_trace.csv",
                                    "Start (ns),Duration (ns),Name,CorrID,Tid\n1,2,cudaMemcpy\n");
  temporary("cut_cuda_gpu_trace.csv", "Start (ns)\n");
  const std::string negative = temporary(
      "negative_cuda_api_trace.csv",
      "Start (ns),Duration (ns),Name,CorrID,Tid\n1,2,cudaMemcpy,3,4\n5,-2,cudaMemcpy,6,4\n");
  temporary("negative_cuda_gpu_trace.csv", "Start (ns)\n");
  const std::string trace = temporary("wrong.trace", "sealane-trace 1\nlaunch s1 5 t1\n");
  const std::string no_json = temporary("no.json", "{\n\"kind\": \"estimate\",\n");
  const std::string nothing = temporary("nothing.json", "{\"a\": 1}");
  return {
      {"nothing", {"estimate"}, "nothing to estimate"},
      {"workload", {"estimate", "--workload", "flexgem"}, "did you mean 'flexgen'?"},
      {"model", {"estimate", "--workload", "vllm", "--model", "opt-30"}, "did you mean 'opt-30b'?"},
      {"ddp_model", {"estimate", "--workload", "ddp", "--model", "gpt2xl"}, "'gpt2-xl'?"},
      {"platform",
       {"estimate", "--workload", "vllm", "--platform", "h100-sxn"},
       "did you mean 'h100-sxm'?"},
      {"policy", {"estimate", "--workload", "vllm", "--policy", "stok"}, "did you mean 'stock'?"},
      {"ddp_policy",
       {"estimate", "--workload", "ddp", "--policy", "pipellm"},
       "there are: off, study, buckets, stock, sealane"},
      {"foreign_flag",
       {"estimate", "--workload", "flexgen", "--rate", "2"},
       "--rate means nothing to 'flexgen', which reads: --batch"},
      {"both", {"estimate", "--workload", "vllm", trace}, "not both"},
      {"no_gpus", {"estimate", "--workload", "ddp", "--gpus", "0"}, "--gpus: 0 is not from 1"},
      {"link", {"estimate", "--workload", "ddp", "--link", "nvlnk"}, "did you mean 'nvlink'?"},
      {"too_large",
       {"estimate", "--workload", "decode", "--model", "opt-175b"},
       "GB of GPU memory, the platform has"},
      {"too_large_for_the_host",
       {"estimate", "--workload", "flexgen", "--model", "opt-175b", "--batch", "2000",
        "--kv-on-gpu", "0"},
       "GB of host memory, the platform has"},
      {"platform_key", {"estimate", "--workload", "vllm", "--platform", unknown}, "unknown.toml:"},
      {"platform_lacks",
       {"estimate", "--workload", "vllm", "--platform", missing},
       "missing.toml:1: missing key 'gpu.kernel_slowdown'"},
      {"cut_off", {"estimate", api}, "cut_cuda_api_trace.csv:2: the row has 3 fields"},
      {"negative", {"estimate", negative}, "negative_cuda_api_trace.csv:3: 'Duration (ns)' is neg"},
      {"trace", {"estimate", trace}, "wrong.trace:2:"},
      {"no_trace", {"estimate", "/nonexistent"}, "/nonexistent: cannot be read"},
      {"report_not_json", {"report", no_json, "-o", "/dev/null"}, "no.json:3: not JSON"},
      {"report_nothing", {"report", nothing, "-o", "/dev/null"}, "nothing.json:1: nothing to draw"},
      {"report_no_file", {"report", "/nonexistent", "-o", "/dev/null"}, "cannot be read"},
      {"validate_data", {"validate", "--data", "/nonexistent"}, "--data: no NAME-off_cuda"},
  };
}

INSTANTIATE_TEST_SUITE_P(Cli, EstimateWrongUse, testing::ValuesIn(wrong_uses()),
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

TEST(CliEstimate, TraceOpensInPerfetto) {
  const std::string path = temporary("run.trace.json");
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

TEST(CliEstimate, TrainingSaysWhoSealsAndWhatItNeeds) {
  const ProgramResult result = sealane({"estimate", "--workload", "ddp", "--model", "gpt2-xl"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("16 cores per machine at 6.8 GB/s each"), std::string::npos);
  EXPECT_NE(result.out.find("for 1.15x of 'off' each would need"), std::string::npos);
  EXPECT_NE(result.out.find("41.60x"), std::string::npos) << result.out;
}

TEST(CliEstimate, ReadsATraceOfItsOwnFormat) {
  const std::string trace =
      temporary("good.trace",
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
    const std::string serving = temporary("serving.json");
    const std::string training = temporary("training.json");
    const std::string bench = temporary(
        "bench.json",
        R"({"rows":[{"op":"allreduce","bytes":65536,"system":"sealane","mode":"sealed",)"
        R"("busbw_gb_s":2.5,"time_us":26.0},{"op":"allreduce","bytes":1048576,"system":"sealane",)"
        R"("mode":"sealed","busbw_gb_s":3.5,"time_us":300.0}]})");
    const std::string checks = temporary(
        "checks.json",
        R"({"kind":"validation","checks":[{"group":"a","what":"</script><b>","unit":"%",)"
        R"("published":[1,2],"predicted":1.5,"error":0,"error_unit":"points","calibrated":false,)"
        R"("source":"s","note":""}],"notes":["n"]})");
    EXPECT_EQ(sealane({"estimate", "--workload", "decode", "--steps", "10", "--policy",
                       "stock,engine,async,parallel,sealane", "--json", serving})
                  .exit_code,
              0);
    EXPECT_EQ(sealane({"estimate", "--workload", "ddp", "--json", training}).exit_code, 0);
    const std::string page = temporary("page.html");
    const ProgramResult result = sealane({"report", serving, training, bench, checks, "-o", page});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return page;
  }
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
  const std::string profile = testing::TempDir() + "/estimate-chromium";
  const ProgramResult result = run_program(
      {"chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + profile,
       "--enable-logging=stderr", "--dump-dom", "--virtual-time-budget=4000", "file://" + make()},
      {.environment = {}, .input = "", .limit = std::chrono::seconds(60)});
  std::filesystem::remove_all(profile);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err.find("CONSOLE"), std::string::npos) << result.err;
  const size_t at = result.out.find("data-charts=\"");
  ASSERT_NE(at, std::string::npos) << "the script did not reach its end: " << result.err;
  EXPECT_GE(std::stoi(result.out.substr(at + 13)), 5) << "charts are missing";
}

}  // namespace
}  // namespace sealane::test
