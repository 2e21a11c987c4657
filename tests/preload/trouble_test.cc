// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Something goes wrong while slots are full: does the program get right bytes or its error, has the
// device accepted every message there was, and was anything sealed ahead at all?

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

enum class Slots : uint8_t { used, unused, either };

struct Trouble {
  std::string what;
  Words environment;
  Slots slots = Slots::either;  // a busy machine may leave no time to seal ahead
  bool ends_itself = true;      // else nobody is left to say what was seen
  bool attacked = false;
};

std::string name_of(const testing::TestParamInfo<Trouble>& test) {
  std::string name = std::to_string(test.index) + "_" + test.param.what;
  for (const std::string& variable : test.param.environment) name += "_" + variable;
  for (char& letter : name) letter = std::isalnum(letter) != 0 ? letter : '_';
  return name;
}

json read(const std::string& file) {
  std::ifstream in(file);
  return in ? json::parse(in, nullptr, false) : json();
}

class Troubles : public testing::TestWithParam<Trouble> {
 protected:
  Troubles() { EXPECT_NE(mkdtemp(scratch_.data()), nullptr); }
  ~Troubles() override { std::filesystem::remove_all(scratch_); }

  ProgramResult run(const Trouble& trouble) const {
    ProgramOptions options;
    options.environment = {"LD_LIBRARY_PATH=" SEALANE_EMU_DIR,
                           "LD_PRELOAD=" SEALANE_PRELOAD,
                           "SEALANE_EMU_CC=on",
                           "SEALANE_EMU_GPUS=2",
                           "SEALANE_EMU_STATS=" + truth_,
                           "SEALANE_STATS=" + stats_,
                           "SEALANE_POLICY=speculate",
                           "SEALANE_WORKERS=3"};
    options.environment.insert(options.environment.end(), trouble.environment.begin(),
                               trouble.environment.end());
    return run_program({SEALANE_TROUBLE, trouble.what}, options);
  }

  std::string scratch_ = std::filesystem::temp_directory_path() / "sealane-trouble-XXXXXX";
  std::string truth_ = "";
  std::string stats_ = "";

  void SetUp() override {
    truth_ = scratch_ + "/truth";
    stats_ = scratch_ + "/stats";
  }
};

TEST_P(Troubles, LeaveRightBytesOrAnError) {
  const Trouble& trouble = GetParam();
  const ProgramResult result = run(trouble);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err << "signal " << result.signal
                                 << (result.timed_out ? ": it hangs" : "");
  EXPECT_EQ(result.out, "ok\n");
  if (!trouble.ends_itself) return;
  const json truth = read(truth_);
  for (const char* direction : {"to_device", "to_host"}) {
    const json& lane = truth.at(direction);
    EXPECT_LE(lane.at("rejected"), trouble.attacked ? 1 : 0) << truth;
    if (!trouble.attacked) {
      EXPECT_EQ(lane.at("sealed_bytes"), lane.at("verified_bytes"));
    }
  }
  const uint64_t sealed_ahead = read(stats_).at("speculation").at("hit_bytes").get<uint64_t>();
  if (trouble.slots == Slots::used) {
    EXPECT_GT(sealed_ahead, 0u) << "nothing was tested";
  }
  if (trouble.slots == Slots::unused) {
    EXPECT_EQ(sealed_ahead, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Troubles,
    testing::Values(
        Trouble{"none", {}, Slots::used}, Trouble{"none", {"SEALANE_PAGE_GUARDS=0"}},
        Trouble{"none", {"SEALANE_SLOT_MB=1"}, Slots::either},
        Trouble{"none", {"SEALANE_WORKERS=1"}, Slots::unused},
        Trouble{"none", {"SEALANE_WORKERS=2"}},
        // However the driver seals.
        Trouble{"none", {"SEALANE_EMU_UPDATES=3"}, Slots::used},
        Trouble{"none", {"SEALANE_EMU_MESSAGE=65536"}, Slots::used},
        Trouble{"none", {"SEALANE_EMU_MESSAGE=4194304"}, Slots::used},
        Trouble{"none", {"SEALANE_EMU_SEAL_THREAD=on"}, Slots::used},
        Trouble{"none", {"SEALANE_EMU_AAD=on"}, Slots::used},
        Trouble{"none", {"SEALANE_EMU_FRESH_CONTEXTS=on"}, Slots::used},
        Trouble{"none", {"SEALANE_EMU_STAGED=on"}, Slots::used},
        Trouble{"none",
                {"SEALANE_EMU_UPDATES=5", "SEALANE_EMU_MESSAGE=200000",
                 "SEALANE_EMU_SEAL_THREAD=on", "SEALANE_EMU_AAD=on"},
                Slots::used},
        Trouble{
            "rotate",
            {"SEALANE_EMU_UPDATES=3", "SEALANE_EMU_MESSAGE=65536", "SEALANE_EMU_SEAL_THREAD=on"},
            Slots::either},
        Trouble{"fork", {}}, Trouble{"fork", {"SEALANE_PAGE_GUARDS=0"}}, Trouble{"rotate", {}},
        Trouble{"rotate", {"SEALANE_EMU_CHATTER=3", "SEALANE_SLOT_MB=8"}, Slots::either},
        Trouble{"rotate", {"SEALANE_EMU_SEAL_THREAD=on"}, Slots::either},
        Trouble{"host-function", {}}, Trouble{"small-fetch", {}},
        Trouble{"host-function", {"SEALANE_PAGE_GUARDS=0", "SEALANE_EMU_MEMOPS=off"}},
        Trouble{"graph-writes", {}}, Trouble{"graph-beside", {}, Slots::used}, Trouble{"reset", {}},
        Trouble{"crowd", {"SEALANE_EMU_CONTEXTS=8"}}, Trouble{"free", {}},
        Trouble{"free", {"SEALANE_EMU_MEMOPS=off", "SEALANE_PAGE_GUARDS=0"}},
        Trouble{"exit", {}, Slots::either, false}, Trouble{"attack", {}, Slots::either, true, true},
        Trouble{"attack", {"SEALANE_EMU_MEMOPS=off"}, Slots::either, true, true},
        Trouble{"attack", {"SEALANE_EMU_CONTEXTS=2"}, Slots::either, true, true},
        Trouble{"attack", {"SEALANE_EMU_CONTEXTS=4"}, Slots::either, true, true},
        Trouble{"threads", {}, Slots::either}, Trouble{"stall", {}},
        Trouble{"parameters", {}, Slots::either}, Trouble{"no-threads", {}, Slots::unused},
        Trouble{"one-thread", {}, Slots::either}, Trouble{"no-lock", {}},
        Trouble{"no-lock-swap", {}, Slots::unused}),
    name_of);

// The lane of the first device has stopped when the program ends, the other one has not, and stands
// behind it: both are told. That it has stopped is seen where its device copies again: there is one
// more.
class StoppedLanes : public Troubles {};

TEST_P(StoppedLanes, AreInStatisticsAndMetricsAndHideNoOther) {
  Trouble trouble = GetParam();
  trouble.environment.push_back("SEALANE_METRICS=" + scratch_ + "/metrics");
  const ProgramResult result = run(trouble);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const json lanes = read(stats_).at("speculation").at("lanes");
  const bool opens_another = trouble.what == "lane-stops-and-opens";
  ASSERT_EQ(lanes.size(), opens_another ? 3u : 2u) << lanes;
  if (opens_another) {
    EXPECT_EQ(lanes[2].at("device"), 0) << lanes;
    EXPECT_EQ(lanes[2].at("lane"), 1) << lanes;
  }
  std::stringstream metrics;
  metrics << std::ifstream(scratch_ + "/metrics").rdbuf();
  for (size_t device = 0; device < 2; ++device) {
    EXPECT_EQ(lanes[device].at("device"), device) << lanes;
    EXPECT_GT(lanes[device].at("requests"), 0) << lanes;
    const std::string told = "\nsealane_speculation_requests_total{";
    const std::string of = "device=\"" + std::to_string(device) + "\"";
    const std::string text = metrics.str();
    bool found = false;
    for (size_t at = 0; (at = text.find(told, at)) != text.npos; ++at) {
      found = found || text.substr(at, text.find('}', at) - at).find(of) != text.npos;
    }
    EXPECT_TRUE(found) << "device " << device << ": " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, StoppedLanes,
                         testing::Values(Trouble{"lane-stops", {"SEALANE_EMU_CONTEXTS=6"}},
                                         Trouble{"lane-stops-and-opens",
                                                 {"SEALANE_EMU_CONTEXTS=6"}}),
                         name_of);

}  // namespace
}  // namespace sealane::test
