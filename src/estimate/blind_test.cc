// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is what others measured foretold from the manifest alone, and is whatever is wrong with their
// files said in one line?

#include "estimate/blind.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace sealane::estimate {
namespace {

constexpr const char* kManifest = R"(sender = "somebody"
platform = "h100-tdx"

[[run]]
name = "copy"
copy-bytes = 1048576
direction = "to-host"
measures = "copy-rate"

[[run]]
name = "decode"
workload = "decode"
measures = "loss"
options = { concurrency = 64, step-ms = 21.5, steps = 20, graphs = "full" }

[[run]]
name = "trace"
trace = "run.trace"
measures = "slowdown"

[[run]]
name = "training"
workload = "ddp"
model = "gpt2-large"
measures = "time"
options = { gpus = 16, batch = 8, link = "pcie" }
)";

constexpr const char* kTrace =
    "sealane-trace 1\n"
    "create context c1 t1\n"
    "create stream s1 c1 blocking t1\n"
    "copy h2d s1 0x200000 0x7f0000000000 4194304 pinned async t1\n"
    "launch s1 5000 t1\n"
    "sync stream s1 t1\n";

// A directory of the test's own.
class Folder {
 public:
  Folder() {
    std::string pattern = testing::TempDir() + "/blind-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ + "/" + name) << content;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result<Blind> read(const std::string& manifest) {
  const Folder folder;
  folder.write("manifest.toml", manifest);
  folder.write("run.trace", kTrace);
  return read_blind(folder.path());
}

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kManifest;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& manifest) {
  const auto blind = read(manifest);
  if (blind) return "accepted";
  EXPECT_EQ(blind.error().kind, ErrorKind::usage);
  EXPECT_EQ(blind.error().message.find('\n'), std::string::npos);
  return blind.error().message;
}

TEST(Blind, EveryRunIsForetoldWithItsInterval) {
  const auto blind = read(kManifest);  // there is no measured.csv at all
  ASSERT_TRUE(blind) << blind.error().message;
  const auto foretold = foretell(*blind, kDraws, {});
  ASSERT_TRUE(foretold) << foretold.error().message;
  ASSERT_EQ(foretold->size(), 4u);
  const std::vector<std::string> units{"GB/s", "%", "x", "ms"};
  for (size_t i = 0; i < units.size(); ++i) {
    const Foretold& each = (*foretold)[i];
    EXPECT_EQ(each.unit, units[i]);
    EXPECT_LE(each.range.low, each.predicted) << each.name;
    EXPECT_GT(each.range.high, each.predicted) << each.name;
  }
  EXPECT_NEAR((*foretold)[0].predicted, 8.3, 0.2) << "as `validate` says of the same copy";
  DdpOptions training;
  training.gpus = 16;
  training.batch = 8;
  training.link = Link::pcie;
  training.workers = blind->runs[3].workers;
  const std::vector<std::string> stock{"stock"};
  const auto rows =
      estimate_ddp(*workload::find_training_model("gpt2-large"), blind->platform, training, stock);
  ASSERT_TRUE(rows);
  EXPECT_DOUBLE_EQ((*foretold)[3].predicted, 1e3 * rows->back().time_s) << "as `estimate` does";
  EXPECT_EQ(foretold_csv(*foretold).rfind("name,unit,predicted,low,high\ncopy,GB/s,", 0), 0u);
}

TEST(Blind, ValuesAreComparedByName) {
  const auto blind = read(kManifest);
  ASSERT_TRUE(blind);
  const std::vector<Foretold> foretold{
      {"copy", "GB/s", 8, {7, 9}}, {"decode", "%", 5, {4, 6}}, {"trace", "x", 2, {1.9, 2.1}}};
  std::istringstream measured("name,value,high\ntrace,3,\ndecode,6,8\ncopy,8,\n");
  const auto validation = compare(*blind, foretold, measured);
  ASSERT_TRUE(validation) << validation.error().message;
  ASSERT_EQ(validation->checks.size(), 3u);
  EXPECT_TRUE(validation->checks[0].inside());
  EXPECT_TRUE(validation->checks[1].inside());
  EXPECT_EQ(validation->checks[1].published_high, 8);
  EXPECT_FALSE(validation->checks[2].inside());
  EXPECT_NEAR(validation->checks[2].error(), -33.3, 0.1);
  for (const Check& check : validation->checks) EXPECT_FALSE(check.calibrated);

  const auto wrong = [&](const std::string& text) {
    std::istringstream values(text);
    const auto result = compare(*blind, foretold, values);
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_NE(wrong("name,value\ncopy,8\ndecode,5\n").find("no value of 'trace'"), std::string::npos);
  EXPECT_NE(wrong("name,value\ncopy,8\ndecode,5\ntrace,2\nmore,1\n").find("'more' is not in the"),
            std::string::npos);
  EXPECT_NE(wrong("name,value\ncopy,8\ncopy,9\n").find(":3: a name that was there"),
            std::string::npos);
  EXPECT_NE(wrong("name\ncopy\n").find("'value' is missing"), std::string::npos);
}

TEST(Blind, WhatIsWrongWithAManifestIsSaidWithItsLine) {
  const std::string file = "manifest.toml:";
  EXPECT_NE(error_of("").find(file + "1: missing sender"), std::string::npos);
  EXPECT_NE(error_of(changed("h100-tdx", "h200")).find("unknown platform 'h200'"),
            std::string::npos);
  EXPECT_NE(error_of(changed("sender", "sendr")).find(file + "1: unknown key 'sendr'"),
            std::string::npos);
  EXPECT_NE(error_of(changed("\"decode\"\nmeasures", "\"decod\"\nmeasures")).find("'decod'"),
            std::string::npos);
  EXPECT_NE(error_of(changed("copy-rate", "loss")).find("copies have copy-time"),
            std::string::npos);
  EXPECT_NE(error_of(changed("concurrency", "rate")).find("rate means nothing to 'decode'"),
            std::string::npos);
  EXPECT_NE(error_of(changed("= 64", "= -1")).find("must be a number from 0"), std::string::npos);
  EXPECT_NE(error_of(changed("\"full\"", "\"some\"")).find("graphs: unknown 'some'"),
            std::string::npos);
  EXPECT_NE(error_of(changed("run.trace", "gone.trace")).find("gone.trace"), std::string::npos);
  EXPECT_NE(error_of(changed("\"trace\"", "\"copy\"")).find("two runs are called 'copy'"),
            std::string::npos);
  EXPECT_NE(error_of(changed("trace = ", "# ")).find("give one of workload, trace and copy-bytes"),
            std::string::npos);
  EXPECT_NE(error_of("sender = ").find(file + "1: "), std::string::npos);
  EXPECT_NE(error_of(changed("\"gpt2-large\"", "\"opt-30b\"")).find("unknown model 'opt-30b'"),
            std::string::npos);
  EXPECT_NE(error_of(changed("gpus = 16", "gpu = 16")).find("gpu: means nothing to 'ddp'"),
            std::string::npos);
  EXPECT_NE(error_of(changed("gpus = 16", "gpus = 1.5")).find("gpus: must be a whole number"),
            std::string::npos);
  EXPECT_NE(error_of(changed("\"pcie\"", "\"ib\"")).find("link: pcie, nvlink or"),
            std::string::npos);
  EXPECT_NE(error_of(changed("\"time\"", "\"time\"\npolicy = \"tls\"")).find("policy 'tls'"),
            std::string::npos);
  EXPECT_NE(error_of(changed("\"time\"", "\"copy-rate\"")).find("workloads loss, slowdown"),
            std::string::npos);
}

}  // namespace
}  // namespace sealane::estimate
