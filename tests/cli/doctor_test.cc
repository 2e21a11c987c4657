// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/run_program.h"
#include "support/scratch.h"

namespace sealane::test {
namespace {

using nlohmann::json;

ProgramResult doctor(std::vector<std::string> arguments,
                     std::vector<std::string> environment = {}) {
  arguments.insert(arguments.begin(), {SEALANE_PROGRAM, "doctor"});
  return run_program(arguments, {.environment = std::move(environment), .input = {}});
}

json doctor_json(std::vector<std::string> environment = {}) {
  const ProgramResult result = doctor({"--json", "-"}, std::move(environment));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out);  // throws, and so fails the test, if anything else is there
}

json with_driver(std::vector<std::string> environment) {
  environment.push_back("LD_LIBRARY_PATH=" FAKE_DRIVER_DIRECTORY);
  return doctor_json(std::move(environment));
}

// The check of this name; null if there is none.
json check(const json& report, const std::string& area, const std::string& name) {
  for (const json& entry : report["checks"]) {
    if (entry["area"] == area && entry["name"] == name) return entry;
  }
  return nullptr;
}

bool mentions(const json& text, const std::string& part) {
  return text.get<std::string>().find(part) != std::string::npos;
}

TEST(Doctor, EveryLineHasAVerdictAndTroubleHasAdvice) {
  const json report = doctor_json();
  size_t ok = 0;
  for (const json& entry : report["checks"]) {
    const bool fine = entry["status"] == "ok";
    ok += fine ? 1 : 0;
    EXPECT_TRUE(fine || entry["status"] == "warn") << entry;
    EXPECT_EQ(entry["advice"].get<std::string>().empty(), fine) << entry;
    EXPECT_FALSE(entry["detail"].get<std::string>().empty()) << entry;
  }
  EXPECT_EQ(report["summary"]["ok"], ok);
  EXPECT_EQ(report["summary"]["warn"], report["checks"].size() - ok);
  EXPECT_EQ(report["summary"]["fail"], 0);
}

TEST(Doctor, SaysWhatWouldBeDecidedAboutSealingAhead) {
  const json found = check(doctor_json(), "CPU and engine", "sealing ahead")["detail"];
  EXPECT_TRUE(found.get<std::string>().starts_with("on: ") || mentions(found, "off")) << found;
}

TEST(Doctor, NamesTheEngineThatWasAskedFor) {
  const json report = doctor_json({"SEALANE_AEAD=openssl"});
  EXPECT_EQ(report["engine"]["name"], "openssl");
  EXPECT_TRUE(mentions(report["engine"]["version"], "OpenSSL 3"));
  EXPECT_TRUE(mentions(check(report, "CPU and engine", "engine openssl")["detail"], "in use"));
}

// What other CPUs have is said beside what was measured here; SEALANE_CPU makes any CPU such a one.
TEST(Doctor, SaysWhatThisCpuLacksAndWhatThatCosts) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "there is nothing wider to lack";
#endif
  const auto speed = [](const std::string& hidden) {
    return check(doctor_json({"SEALANE_CPU=" + hidden}), "CPU and engine", "sealing speed");
  };
  if (mentions(speed("")["advice"], "no AES instructions")) GTEST_SKIP() << "nor has this one AES";
  const json without_vaes = speed("-avx512,-vaes");
  EXPECT_EQ(without_vaes["status"], "warn") << without_vaes;
  EXPECT_TRUE(mentions(without_vaes["advice"], "This CPU shows no VAES")) << without_vaes;
  EXPECT_TRUE(mentions(without_vaes["advice"], "sealing costs more of a copy here"))
      << without_vaes;
  const json without_avx512 = speed("-avx512");
  EXPECT_EQ(without_avx512["status"], "warn") << without_avx512;
  EXPECT_TRUE(mentions(without_avx512["advice"], "This CPU shows no ")) << without_avx512;
  // With all of it there is nothing to say.
  if (speed("")["status"] == "ok") {
    EXPECT_EQ(speed("")["advice"], "");
  }
}

TEST(Doctor, AnUnknownEngineIsWrongUsage) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, std::vector<std::string>{"--json", "-"}}) {
    const ProgramResult result = doctor(arguments, {"SEALANE_AEAD=enigma"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(result.err.starts_with("sealane: SEALANE_AEAD: unknown engine 'enigma'"))
        << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
  }
}

TEST(Doctor, WrongCryptoFailsAndIsNotUsed) {
  const std::vector<std::string> environment = {"LD_PRELOAD=" WRONG_CRYPTO,
                                                "ASAN_OPTIONS=verify_asan_link_order=0"};
  const ProgramResult result = doctor({"--json", "-"}, environment);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(result.err.starts_with("sealane: ")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  const json report = json::parse(result.out);
  EXPECT_EQ(check(report, "CPU and engine", "engine openssl")["status"], "fail");
  EXPECT_EQ(check(report, "CPU and engine", "engine in use")["status"], "fail");
  EXPECT_TRUE(report["engine"]["name"].is_null());
  EXPECT_GE(report["summary"]["fail"], 2);
}

TEST(Doctor, GuardsAreTriedOnEveryKindOfMemory) {
  const json report = doctor_json();
  if (!check(report, "Page guards", "all memory").is_null()) {
    GTEST_SKIP() << "no page guards here: " << check(report, "Page guards", "all memory");
  }
  EXPECT_TRUE(mentions(check(report, "Page guards", "private memory")["detail"], "guarded: "));
  EXPECT_FALSE(check(report, "Page guards", "locked memory").is_null());
  for (const char* name : {"shared memory", "file mapping"}) {
    EXPECT_TRUE(mentions(check(report, "Page guards", name)["detail"], "not guarded, on purpose"));
  }
}

TEST(Doctor, TextIsPlainAndFitsATerminal) {
  const ProgramResult result = doctor({});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos) << "colour is for terminals";
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_NE(result.out.find("What to expect\n"), std::string::npos);
}

TEST(Doctor, WritesJsonBesideTheText) {
  const Scratch scratch;
  const std::string path = scratch.file("checks.json");
  const ProgramResult result = doctor({"--json", path});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("CPU and engine\n"));
  std::ifstream file(path);
  EXPECT_FALSE(json::parse(file)["checks"].empty());
}

TEST(Doctor, FindsAConfidentialGpu) {
  const json report = with_driver({"FAKE_GPU_CC=2 1 0"});
  EXPECT_EQ(check(report, "GPU", "driver")["status"], "ok");
  EXPECT_EQ(check(report, "GPU", "driver")["detail"],
            "1 GPU (NVIDIA H100 NVL), driver 550.127.05, CUDA 12.4");
  EXPECT_EQ(check(report, "GPU", "CC mode")["status"], "ok");
  EXPECT_EQ(check(report, "GPU", "CC mode")["detail"], "on");
}

TEST(Doctor, WarnsWhereCcModeDoesNotProtect) {
  const auto cc = [](const std::string& state) {
    return check(with_driver({"FAKE_GPU_CC=" + state}), "GPU", "CC mode");
  };
  EXPECT_EQ(cc("2 0 0")["status"], "warn");
  EXPECT_TRUE(mentions(cc("2 0 0")["detail"], "off"));
  EXPECT_EQ(cc("2 1 1")["status"], "warn");
  EXPECT_TRUE(mentions(cc("2 1 1")["detail"], "developer tools"));
  EXPECT_TRUE(mentions(cc("1 1 0")["detail"], "simulated"));
  EXPECT_TRUE(mentions(check(with_driver({}), "GPU", "CC mode")["detail"], "does not say"));
}

TEST(Doctor, ADriverThatDoesNotStartIsAWarning) {
  const json report = with_driver({"FAKE_GPU_CC=2 1 0", "FAKE_GPU_INIT=802"});
  const json driver = check(report, "GPU", "driver");
  EXPECT_EQ(driver["status"], "warn");
  EXPECT_TRUE(mentions(driver["detail"], "cuInit fails with CUDA error 802"));
}

}  // namespace
}  // namespace sealane::test
