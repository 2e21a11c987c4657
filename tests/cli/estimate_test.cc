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
                 "x.toml:79: unknown key 'gpu.speed_of_light'",
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

TEST(CliEstimate, TrainingSaysWhoSealsAndWhatItNeeds) {
  const ProgramResult result = sealane({"estimate", "--workload", "ddp", "--model", "gpt2-xl"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("16 cores per machine at 6.8 GB/s each"), std::string::npos);
  EXPECT_NE(result.out.find("for 1.15x of 'off' each would need"), std::string::npos);
  EXPECT_NE(result.out.find("41.60x"), std::string::npos) << result.out;
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
       "--enable-logging=stderr", "--dump-dom", "--virtual-time-budget=4000", "file://" + make()},
      {.environment = {}, .input = "", .limit = std::chrono::seconds(60)});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err.find("CONSOLE"), std::string::npos) << result.err;
  const size_t at = result.out.find("data-charts=\"");
  ASSERT_NE(at, std::string::npos) << "the script did not reach its end: " << result.err;
  EXPECT_GE(std::stoi(result.out.substr(at + 13)), 10) << "charts are missing";
}

}  // namespace
}  // namespace sealane::test
