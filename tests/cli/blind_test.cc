// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane validate --blind: are the predictions written before anybody opens the measurements, and
// can nobody change them afterwards?

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

constexpr const char* kManifest =
    "sender = \"a lab\"\nplatform = \"h100-tdx\"\n"
    "[[run]]\nname = \"copy\"\ncopy-bytes = 1048576\nmeasures = \"copy-time\"\n"
    "[[run]]\nname = \"decode\"\nworkload = \"decode\"\nmeasures = \"loss\"\n"
    "options = { steps = 20, concurrency = 8 }\n";
constexpr const char* kMeasured = "name,value\ncopy,135\ndecode,90\n";

class BlindTest : public testing::Test {
 protected:
  BlindTest() {
    std::string pattern = testing::TempDir() + "/blind-cli-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    path_ = pattern;
    write("manifest.toml", kManifest);
  }
  ~BlindTest() override { std::filesystem::remove_all(path_); }

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(file(name)) << content;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(file(name));
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  ProgramResult run() const { return run_program({SEALANE_PROGRAM, "validate", "--blind", path_}); }

  std::string path_;
};

// It is somebody else's file.
TEST_F(BlindTest, AManifestThatIsTooDeepOrTooLargeIsRefused) {
  std::string key = "a";
  for (int i = 0; i < 200'000; ++i) key += ".a";
  for (const auto& [manifest, said] :
       {std::pair<std::string, std::string>{"sender = 1\n" + key + " = 1\n",
                                            "manifest.toml:2: more than 32 dots in a line"},
        {"sender = \"" + std::string(2 << 20, 'x') + "\"\n", "too large for a manifest"}}) {
    write("manifest.toml", manifest);
    const ProgramResult result = run();
    EXPECT_EQ(result.exit_code, 2) << result.signal << result.err;
    EXPECT_NE(result.err.find(said), std::string::npos) << result.err;
  }
}

// The measurements are a pipe: a writer gets in only once somebody has opened it to read.
TEST_F(BlindTest, NobodyOpensTheMeasurementsBeforeThePredictionsAreWritten) {
  ASSERT_EQ(mkfifo(file("measured.csv").c_str(), 0600), 0);
  std::atomic<bool> ended{false};
  bool opened = false;
  bool written_before = false;
  std::thread lab([&] {
    while (!ended) {
      const int pipe = open(file("measured.csv").c_str(), O_WRONLY | O_NONBLOCK);
      if (pipe < 0) {
        std::this_thread::yield();
        continue;
      }
      opened = true;
      written_before = !read("predictions.csv").empty();
      const std::string values = kMeasured;
      EXPECT_EQ(::write(pipe, values.data(), values.size()), static_cast<ssize_t>(values.size()));
      close(pipe);
      return;
    }
  });
  const ProgramResult result = run();
  ended = true;
  lab.join();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(opened) << "nobody read the measurements at all";
  EXPECT_TRUE(written_before) << "the measurements were opened before the predictions were there";
  EXPECT_NE(result.out.find("MEASURED by others"), std::string::npos) << result.out;
}

TEST_F(BlindTest, PredictsWithoutMeasurementsAndComparesLater) {
  const ProgramResult first = run();
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("2 predictions are in"), std::string::npos) << first.out;
  const std::string predictions = read("predictions.csv");
  EXPECT_NE(predictions.find("\ncopy,us,13"), std::string::npos) << predictions;
  EXPECT_FALSE(std::filesystem::exists(file("verdict.txt")));

  write("measured.csv", kMeasured);
  const ProgramResult second = run();
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(read("predictions.csv"), predictions);
  EXPECT_EQ(read("verdict.txt"), second.out);
  for (const char* said : {"copy", "decode", "inside 80 %", "sender       a lab", "sha256 "}) {
    EXPECT_NE(second.out.find(said), std::string::npos) << said;
  }
  EXPECT_NE(second.out.find("1 of 2, 50 %"), std::string::npos) << second.out;
}

TEST_F(BlindTest, PredictionsThatAreThereAreNeverReplaced) {
  write("measured.csv", kMeasured);
  write("predictions.csv",
        "name,unit,predicted,low,high\ncopy,us,135,130,140\ndecode,%,90,80,95\n");
  const std::string before = read("predictions.csv");
  const ProgramResult result = run();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("other predictions are there"), std::string::npos) << result.err;
  EXPECT_EQ(read("predictions.csv"), before);
  EXPECT_FALSE(std::filesystem::exists(file("verdict.txt")));
}

// The folder is its sender's, and so is where its links lead.
TEST_F(BlindTest, NothingIsWrittenThroughALinkInTheFolder) {
  write("measured.csv", kMeasured);
  for (const char* name : {"predictions.csv", "verdict.txt"}) {
    for (const bool there : {false, true}) {
      if (there) write("victim", "precious");
      std::filesystem::create_symlink("victim", file(name));
      const ProgramResult result = run();
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_NE(result.err.find("is no ordinary file"), std::string::npos) << result.err;
      EXPECT_EQ(read("victim"), there ? "precious" : "");
      EXPECT_EQ(std::filesystem::exists(file("victim")), there);
      std::filesystem::remove(file(name));
      std::filesystem::remove(file("victim"));
    }
  }
}

}  // namespace
}  // namespace sealane::test
