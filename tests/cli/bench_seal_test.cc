// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane bench seal` end to end: the promised shape of its results and its errors. How fast it
// finds this machine is not tested.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

using nlohmann::json;

ProgramResult bench_seal(std::vector<std::string> arguments,
                         const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), {SEALANE_PROGRAM, "bench", "seal"});
  return run_program(arguments, {.environment = environment, .input = {}});
}

// An empty folder of this test's own, gone afterwards.
class BenchSeal : public testing::Test {
 protected:
  BenchSeal() {
    std::string pattern = std::filesystem::temp_directory_path() / "bench_seal.XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~BenchSeal() override { std::filesystem::remove_all(folder_); }

  bool folder_is_empty() const { return std::filesystem::is_empty(folder_); }

  std::filesystem::path folder_;
};

void expect_positive(const json& value, const char* what) {
  ASSERT_TRUE(value.is_number()) << what << ": " << value;
  EXPECT_GT(value.get<double>(), 0) << what;
}

TEST_F(BenchSeal, JsonHasThePromisedShape) {
  const ProgramResult result =
      bench_seal({"--seconds", "0.3", "--record-bytes", "64K", "--record-bytes", "16K",
                  "--record-bytes", "64K", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");  // no progress unless a person watches
  const json report = json::parse(result.out);

  EXPECT_EQ(report.at("label"), "MEASURED");
  for (const char* where : {"l2", "dram"}) {
    expect_positive(report.at("memcpy_gb_s").at(where), where);
    expect_positive(report.at("nt_copy_gb_s").at(where), where);
  }
  std::set<std::string> engines;
  std::set<std::string> rows;
  for (const json& row : report.at("results")) {
    engines.insert(row.at("engine"));
    EXPECT_TRUE(rows.insert(row.at("engine").get<std::string>() + row.at("op").get<std::string>() +
                            row.at("where").get<std::string>() + row.at("record_bytes").dump())
                    .second)
        << row;
    EXPECT_TRUE(row.at("op") == "seal" || row.at("op") == "open") << row;
    EXPECT_TRUE(row.at("where") == "l2" || row.at("where") == "dram") << row;
    EXPECT_TRUE(row.at("record_bytes") == 65536 || row.at("record_bytes") == 16384) << row;
    expect_positive(row.at("gb_s"), "gb_s");
    expect_positive(row.at("vs_memcpy"), "vs_memcpy");
    EXPECT_GE(row.at("spread_pct").get<double>(), 0);
  }
  EXPECT_TRUE(engines.contains("openssl"));
  EXPECT_EQ(rows.size(), engines.size() * 2 * 2 * 2);

  const json& best = report.at("best");
  EXPECT_TRUE(engines.contains(best.at("engine")));
  EXPECT_EQ(best.at("where"), "dram");
  EXPECT_EQ(best.at("record_bytes"), 65536);
  expect_positive(best.at("vs_openssl"), "vs_openssl");
  expect_positive(best.at("vs_memcpy"), "vs_memcpy");
}

TEST_F(BenchSeal, OneEngineOneSizeOnePlace) {
  const std::string path = folder_ / "seal.json";
  const ProgramResult result = bench_seal({"--engine", "openssl", "--record-bytes", "5000",
                                           "--where", "l2", "--seconds", "0.1", "--json", path});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("MEASURED"), std::string::npos);
  EXPECT_NE(result.out.find("5000 B"), std::string::npos);
  EXPECT_NE(result.out.find("In plain words"), std::string::npos);

  const json report = json::parse(std::ifstream(path));
  ASSERT_EQ(report.at("results").size(), 2u);  // seal, open
  for (const json& row : report.at("results")) {
    EXPECT_EQ(row.at("engine"), "openssl");
    EXPECT_EQ(row.at("where"), "l2");
    EXPECT_EQ(row.at("record_bytes"), 5000);
  }
  EXPECT_TRUE(report.at("memcpy_gb_s").at("dram").is_null());
  EXPECT_EQ(report.at("best").at("engine"), "openssl");
  EXPECT_EQ(report.at("best").at("vs_openssl"), 1.0);
  EXPECT_EQ(report.at("best").at("where"), "l2");
}

// Whatever was fastest in this run: the engine that would serve, and what its CPU lacks.
TEST_F(BenchSeal, SpeaksOfTheEngineInUseAndOfWhatItsCpuLacks) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "there is nothing wider to lack";
#endif
  for (const std::string hidden : {"-avx512,-vaes", "-avx512"}) {
    const std::vector<std::string> environment = {"SEALANE_CPU=" + hidden};
    const std::string path = folder_ / "seal.json";
    const ProgramResult result =
        bench_seal({"--seconds", "0.1", "--where", "l2", "--json", path}, environment);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("This CPU shows no "), std::string::npos) << result.out;
    const ProgramResult doctor = run_program({SEALANE_PROGRAM, "doctor", "--json", "-"},
                                             {.environment = environment, .input = {}});
    const json served = json::parse(doctor.out).at("engine").at("name");
    EXPECT_EQ(json::parse(std::ifstream(path)).at("best").at("engine"), served);
    EXPECT_NE(result.out.find(served.get<std::string>() + " needs "), std::string::npos)
        << result.out;
  }
}

TEST_F(BenchSeal, TheTableFitsATerminal) {
  const ProgramResult result = bench_seal({"--seconds", "0.1", "--where", "l2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  size_t start = 0;
  for (size_t end; (end = result.out.find('\n', start)) != std::string::npos; start = end + 1) {
    EXPECT_LE(end - start, 100u) << result.out.substr(start, end - start);
  }
}

TEST_F(BenchSeal, AnUnwritableJsonPathFailsFirstAndLeavesNothing) {
  const std::string path = folder_ / "missing" / "seal.json";
  // An hour: it would be killed, had it started to measure.
  const ProgramResult result = bench_seal({"--seconds", "3600", "--json", path});
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("cannot write " + path), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(folder_is_empty());
}

TEST_F(BenchSeal, WrongUseLeavesNoFile) {
  const ProgramResult result =
      bench_seal({"--record-bytes", "0", "--json", (folder_ / "seal.json").string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(folder_is_empty());
}

struct WrongUse {
  std::string name;
  std::vector<std::string> arguments;
  std::string says;
};

class BenchSealWrongUse : public testing::TestWithParam<WrongUse> {};

TEST_P(BenchSealWrongUse, IsOneLineAndExitTwo) {
  const ProgramResult result = bench_seal(GetParam().arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("sealane: ")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(GetParam().says), std::string::npos) << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    Cli, BenchSealWrongUse,
    testing::Values(
        WrongUse{"unknown_engine", {"--engine", "enigma"}, "unknown engine 'enigma'"},
        WrongUse{"one_engine_unknown", {"--engine", "openssl", "--engine", "x"}, "'x'"},
        WrongUse{"zero_record", {"--record-bytes", "0"}, "between 1 byte and 1 GiB"},
        WrongUse{"huge_record", {"--record-bytes", "2G"}, "between 1 byte and 1 GiB"},
        WrongUse{"overflowing_record", {"--record-bytes", "99999999999999999999"}, "1 GiB"},
        WrongUse{"negative_record", {"--record-bytes=-4K"}, "not a number of bytes"},
        WrongUse{"word_as_record", {"--record-bytes", "big"}, "not a number of bytes"},
        WrongUse{"record_beyond_l2", {"--record-bytes", "1G", "--where", "l2"}, "L2 cache"},
        WrongUse{"unknown_place", {"--where", "l3"}, "unknown 'l3'; did you mean 'l2'?"},
        WrongUse{"no_time", {"--seconds", "0"}, "--seconds"},
        WrongUse{"negative_time", {"--seconds=-1"}, "--seconds"},
        WrongUse{"no_number", {"--seconds", "nan"}, "--seconds"},
        WrongUse{"endless", {"--seconds", "inf"}, "--seconds"},
        WrongUse{"word_as_time", {"--seconds", "soon"}, "--seconds"},
        WrongUse{"quick_and_seconds", {"--quick", "--seconds", "3"}, "--seconds"},
        WrongUse{"unknown_flag", {"--engin", "openssl"}, "did you mean '--engine'?"}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace sealane::test
