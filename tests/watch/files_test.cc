// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// --stats, --metrics, --trace and `sealane record` with real programs: every way to reach the
// driver, checked against the emulated GPU's own counters, and by those who read such files.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include "base/exchange_for_tests.h"
#include "platform/reader.h"
#include "sim/sim.h"
#include "watch/e2e.h"
#include "watch/exposition_parser.h"
#include "workload/trace.h"

namespace sealane::test {
namespace {

using nlohmann::json;

struct Client {
  std::string name;
  std::vector<std::string> command;
};

void PrintTo(const Client& client, std::ostream* out) { *out << client.name; }

std::string client(const char* name) { return std::string(SEALANE_CLIENTS_DIR "/") + name; }

const std::vector<Client> kClients = {
    {"linked", {client("client_linked_c")}},
    {"linked_per_thread", {client("client_linked_per_thread_c")}},
    {"runtime", {client("client_runtime_c")}},
    {"dlsym", {client("client_loaded_c"), "dlsym"}},
    {"proc_address_v1", {client("client_loaded_c"), "proc-address-v1"}},
    {"static_12", {client("client_loaded_c"), "static-12"}},
    {"static_13", {client("client_loaded_c"), "static-13"}},
    {"static_per_thread", {client("client_loaded_c"), "static-per-thread"}},
};

uint64_t bytes_of(const workload::Program& program, Direction direction) {
  uint64_t sum = 0;
  for (const auto& operation : program) {
    const auto* copy = std::get_if<workload::Copy>(&operation.action);
    if (copy != nullptr && copy->direction == direction) sum += copy->host.bytes;
  }
  return sum;
}

class Clients : public testing::TestWithParam<Client> {
 protected:
  std::vector<std::string> command() const {
    std::vector<std::string> out = {"--"};
    out.insert(out.end(), GetParam().command.begin(), GetParam().command.end());
    return out;
  }
  const Scratch scratch;
};

TEST_P(Clients, EveryByteIsCounted) {
  const ProgramResult run =
      sealane({"run", "--emulate", "--truth", scratch.file("truth"), "--stats",
               scratch.file("stats"), "--trace", scratch.file("trace")},
              command());
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json truth = read_json(scratch.file("truth"));
  const json stats = read_json(scratch.file("stats"));
  for (const char* way : {"to_device", "to_host"}) {
    EXPECT_EQ(stats[way]["copies"], truth[way]["copies"]) << way;
    EXPECT_EQ(stats[way]["bytes"], truth[way]["bytes"]) << way;
    EXPECT_EQ(stats[way]["messages"]["libcrypto"]["bytes"], truth[way]["sealed_bytes"]) << way;
    EXPECT_EQ(stats[way]["failed"], 0);
    EXPECT_GT(stats[way]["copies"], 0);
  }
  EXPECT_NE(run.err.find("callers waited"), std::string::npos);

  const json trace = read_json(scratch.file("trace"));
  uint64_t shown = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event.value("cat", "") == "copy") shown += event["args"].value("bytes", uint64_t{0});
  }
  const uint64_t copied =
      stats["to_device"]["bytes"].get<uint64_t>() + stats["to_host"]["bytes"].get<uint64_t>();
  EXPECT_EQ(shown, copied);
}

TEST_P(Clients, CanBeRecorded) {
  for (const char* cc : {"off", "on"}) {
    const ProgramResult run = sealane({"record", "-o", scratch.file("t"), "--emulate", "--cc", cc,
                                       "--truth", scratch.file("truth")},
                                      command());
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto program = workload::load_trace(scratch.file("t"));
    ASSERT_TRUE(program.ok()) << program.error().message;
    const json truth = read_json(scratch.file("truth"));
    EXPECT_EQ(bytes_of(*program, Direction::to_device), truth["to_device"]["bytes"]);
    EXPECT_EQ(bytes_of(*program, Direction::to_host), truth["to_host"]["bytes"]);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Clients, testing::ValuesIn(kClients),
                         [](const auto& one) { return one.param.name; });

const std::vector<std::string> kLayerSwap = {
    "--", example("layer_swap"), "--width", "256", "--steps", "3"};

TEST(Record, ATraceCanBeReplayedUnderEveryPolicy) {
  const Scratch scratch;
  const ProgramResult run = sealane(
      {"record", "-o", scratch.file("t"), "--emulate", "--platform", "h100-tdx", "--dilation", "5"},
      kLayerSwap);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  auto program = workload::load_trace(scratch.file("t"));
  ASSERT_TRUE(program.ok()) << program.error().message;

  uint64_t launches = 0;
  uint64_t timed = 0;
  for (auto& operation : *program) {
    // How long anything took while other tests ran must not decide which policy is faster below.
    operation.think = Duration(0);
    auto* launch = std::get_if<workload::Launch>(&operation.action);
    if (launch == nullptr) continue;
    ++launches;
    timed += launch->run_time > Duration(0) ? 1 : 0;
    launch->run_time = std::chrono::microseconds(20);
  }
  EXPECT_EQ(launches, 48u);  // 3 steps of 8 layers of 2 matrices
  EXPECT_EQ(timed, launches);

  std::map<std::string, Duration> took;
  for (const std::string policy : {"off", "stock", "parallel", "sealane"}) {
    sim::Setup setup;
    setup.platform = *find_platform(SEALANE_PLATFORM_FILE);
    setup.policy = *find_policy(policy);
    const sim::Outcome outcome = sim::simulate(*program, setup);
    EXPECT_FALSE(outcome.violation) << policy;
    EXPECT_FALSE(outcome.error) << policy << ": " << *outcome.error;
    took[policy] = outcome.elapsed;
  }
  EXPECT_LT(took["off"], took["stock"]);
  EXPECT_LT(took["sealane"], took["stock"]);
}

TEST(Stats, SaysWhatThePartsDid) {
  const Scratch scratch;
  std::string hash;
  for (const std::string enable : {"none", "engine", "engine,async", "engine,async,parallel"}) {
    const ProgramResult run = sealane(
        {"run", "--emulate", "--enable", enable, "--workers", "3", "--stats", scratch.file("s")},
        kLayerSwap);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    if (hash.empty()) hash = printed(run.out, "hash");
    EXPECT_EQ(printed(run.out, "hash"), hash) << enable;
    const json stats = read_json(scratch.file("s"));
    const json& messages = stats["to_device"]["messages"];
    const auto sealed_by = [&](const char* who) { return messages[who]["bytes"].get<uint64_t>(); };
    const uint64_t bytes = stats["to_device"]["bytes"];
    EXPECT_EQ(sealed_by("libcrypto"), enable == "none" ? bytes : 0) << enable;
    EXPECT_EQ(sealed_by("parallel") > 0, enable == "engine,async,parallel") << enable;
    const bool carries = enable.find("async") != std::string::npos;
    EXPECT_EQ(stats["to_device"]["carried_bytes"], carries ? bytes : 0) << enable;
    EXPECT_GT(stats["to_device"]["stock_blocked_s_estimate"], 0);
  }
}

// By the modelled machine's costs, not this one's.
TEST(Stats, SayWhatWasDecidedAboutSealingAhead) {
  const Scratch scratch;
  const auto decision = [&](const std::string& platform, const std::string& enable) {
    const ProgramResult run =
        sealane({"run", "--emulate", "--platform", platform, "--dilation", "100", "--workers", "4",
                 "--enable", enable, "--stats", scratch.file("s")},
                {"--", example("decode_loop"), "--steps", "1"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const json made = read_json(scratch.file("s"))["decisions"]["speculate"];
    const bool told = unwrapped(run.err).find("sealing ahead " + made["why"].get<std::string>()) !=
                      std::string::npos;
    EXPECT_EQ(told, enable != "none") << run.err;
    return made["decision"].get<std::string>();
  };
  // With the driver's pinned memory every request reads its source again to compare a digest.
  EXPECT_EQ(decision("h100-nvl-aesni", "default"), "no_gain");
  EXPECT_EQ(decision("h100-nvl-aesni", "default,pinned"), "pays");
  EXPECT_EQ(decision("h100-tdx", "default"), "no_gain");
  EXPECT_EQ(decision("h100-tdx", "default,pinned"), "if_waited");
  EXPECT_EQ(decision("h100-tdx", "default,speculate"), "asked");
  EXPECT_EQ(decision("h100-tdx", "none"), "excluded");
}

// The clock of an example and the part it profiles are the same, in both APIs and for the driver.
TEST(Stats, OfTheProfiledPartAreThoseOfTheMeasuredSteps) {
  const Scratch scratch;
  for (const std::string suffix : {"", "_drv"}) {
    const ProgramResult run =
        sealane({"run", "--emulate", "--stats", scratch.file("s"), "--truth", scratch.file("t")},
                {"--", example("layer_swap" + suffix), "--width", "256", "--steps", "3", "--warmup",
                 "2", "--json", scratch.file("f")});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const json stats = read_json(scratch.file("s"));
    const json figures = read_json(scratch.file("f"));
    const json& profiled = stats["profiled"];
    EXPECT_EQ(profiled["to_device"]["bytes"], figures["bytes_in"]);
    EXPECT_EQ(profiled["to_device"]["copies"], 3 * 8 * 2);
    EXPECT_EQ(profiled["to_host"]["copies"], 3);
    EXPECT_EQ(stats["to_host"]["copies"], 5);
    EXPECT_TRUE(profiled["speculation"].contains("hit_rate"));
    const json truth = read_json(scratch.file("t"));
    EXPECT_EQ(truth["profiled"]["to_host"]["bytes"], profiled["to_host"]["bytes"]);
    EXPECT_LT(truth["profiled"]["to_device"]["blocked_ns"], truth["to_device"]["blocked_ns"]);
  }
}

TEST(Trace, ShowsLanesAndWorkersAtWork) {
  const Scratch scratch;
  const ProgramResult run = sealane({"run", "--emulate", "--enable", "engine,async,parallel",
                                     "--workers", "3", "--trace", scratch.file("t")},
                                    kLayerSwap);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json trace = read_json(scratch.file("t"));
  std::set<std::string> roles;
  std::set<uint64_t> asked;
  std::set<uint64_t> carried;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") {
      const std::string name = event["args"]["name"];
      roles.insert(name.substr(0, name.find(' ')));
    }
    if (event["ph"] == "s") asked.insert(event["id"].get<uint64_t>());
    if (event["ph"] == "f") carried.insert(event["id"].get<uint64_t>());
    if (event["ph"] == "X") {
      EXPECT_GE(event["dur"], 0);
      EXPECT_GE(event["ts"], 0);
    }
  }
  EXPECT_TRUE(roles.contains("application"));
  EXPECT_TRUE(roles.contains("lane"));
  EXPECT_GT(asked.size(), 20u);
  EXPECT_EQ(asked, carried);
}

// What a viewer of Chrome traces relies on, event by event; returns how many there were of a phase.
std::map<std::string, int> check_schema(const json& trace) {
  std::map<std::string, int> phases;
  for (const json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    ++phases[phase];
    EXPECT_TRUE(event.at("name").is_string());
    EXPECT_TRUE(event.at("pid").is_number_integer());
    EXPECT_TRUE(event.at("tid").is_number_integer());
    if (phase != "M") {
      EXPECT_GE(event.at("ts").get<double>(), 0) << event;
    }
    if (phase == "X") {
      EXPECT_GE(event.at("dur").get<double>(), 0) << event;
    } else if (phase == "C") {
      EXPECT_TRUE(event.at("args").at("bytes").is_number_unsigned()) << event;
    } else if (phase == "i") {
      EXPECT_EQ(event.at("s"), "t");
    } else if (phase == "s" || phase == "f") {
      EXPECT_TRUE(event.at("id").is_number_unsigned()) << event;
    } else {
      EXPECT_EQ(phase, "M") << event;
    }
  }
  return phases;
}

// On a busy machine the workers may never be in time: then there is nothing to see, and it is tried
// again.
TEST(Speculation, IsInStatsSummaryTraceAndMetrics) {
  const Scratch scratch;
  ProgramResult run;
  json stats;
  for (int attempt = 0; attempt < 5; ++attempt) {
    run = sealane({"run", "--emulate", "--policy", "speculate", "--workers", "2", "--stats",
                   scratch.file("s"), "--trace", scratch.file("t"), "--metrics", scratch.file("m")},
                  {"--", example("layer_swap"), "--steps", "6", "--warmup", "4"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    stats = read_json(scratch.file("s"));
    ASSERT_FALSE(stats["speculation"]["lanes"].empty()) << stats;
    if (stats["to_device"]["messages"]["slot"]["count"] > 0) break;
  }
  const json& speculation = stats["speculation"];
  EXPECT_EQ(speculation["requests"], 10 * 8 * 2);
  EXPECT_EQ(speculation["requests"],
            speculation["hits"].get<int>() + speculation["misses"].get<int>());
  EXPECT_GT(speculation["hits"], 0) << speculation;
  const json& profiled = stats["profiled"]["speculation"];
  EXPECT_EQ(profiled["requests"], 6 * 8 * 2);
  EXPECT_LE(profiled["hits"], speculation["hits"]);
  int messages_ahead = 0;
  std::set<std::string> names;
  for (const json& lane : speculation["lanes"]) {
    messages_ahead += lane["messages_ahead"].get<int>();
    EXPECT_GT(lane["slot_bytes_peak"], 0);
    EXPECT_NE(lane["leader"], "");
    const std::string name = "lane " + lane["lane"].dump() + " of GPU 0";
    EXPECT_NE(run.err.find("sealing ahead on " + name + ": "), std::string::npos) << run.err;
    names.insert(name);
  }

  const json trace = read_json(scratch.file("t"));
  const auto phases = check_schema(trace);
  EXPECT_GT(phases.at("C"), 0);
  EXPECT_GT(phases.at("i"), 0);
  int ahead = 0;
  int hits = 0;
  int rows = 0;
  for (const json& event : trace["traceEvents"]) {
    const std::string what = event["name"];
    ahead += what.starts_with("seal ahead ") ? 1 : 0;
    hits += what.starts_with("hit ") ? 1 : 0;
    rows += what == "thread_name" && names.contains(event["args"]["name"]) ? 1 : 0;
  }
  EXPECT_EQ(rows, static_cast<int>(names.size()));
  EXPECT_GT(ahead, 0);
  EXPECT_EQ(hits, stats["to_device"]["messages"]["slot"]["count"]);
  EXPECT_EQ(hits, messages_ahead);

  auto metrics = ExpositionParser::parse(contents(scratch.file("m")));
  ASSERT_TRUE(metrics.contains("sealane_speculation_hits_total"));
  double told = 0;
  for (const auto& [labels, value] : metrics["sealane_speculation_hits_total"].samples) {
    told += value;
    EXPECT_EQ(labels.at("command"), "layer_swap");
  }
  EXPECT_EQ(told, speculation["hits"].get<double>());
}

// A file is there while the program runs, and one that is killed leaves it behind.
TEST(Metrics, AreWrittenWhileTheProgramRuns) {
  const Scratch scratch;
  const std::string script = example("layer_swap") +
                             " --width 256 --steps 20000 & p=$!; i=0; "
                             "while [ ! -e \"$0\"/sealane-$p.prom ] && [ $i -lt 6000 ]; do "
                             "sleep 0.05; i=$((i+1)); done; kill -9 $p; wait $p; "
                             "grep '^sealane_up' \"$0\"/sealane-$p.prom";
  const ProgramResult run =
      sealane({"run", "--emulate", "--metrics", scratch.file(""), "--metrics-seconds", "1"},
              {"--", "sh", "-c", script, scratch.file("")});
  EXPECT_TRUE(run.out.ends_with("} 1\n")) << run.out << run.err;
}

TEST(Metrics, CanBeAskedForByTheEnvironment) {
  const ProgramResult printed =
      sealane({"run", "--print-env", "--metrics", "m.prom", "--metrics-seconds", "7"}, {});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const std::string path = std::filesystem::absolute("m.prom");
  EXPECT_NE(printed.out.find("export SEALANE_METRICS='" + path + "'\n"), std::string::npos);
  EXPECT_NE(printed.out.find("export SEALANE_METRICS_SECONDS='7'\n"), std::string::npos);
}

TEST(Files, OfAProcessThatUsesNoGpuAreNotWritten) {
  const Scratch scratch;
  const std::string command = example("layer_swap") + " --width 256 --steps 2; exit 3";
  const ProgramResult run =
      sealane({"run", "--emulate", "--stats", scratch.file("s")}, {"--", "sh", "-c", command});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(read_json(scratch.file("s"))["to_host"]["copies"], 2);  // not the shell's nothing
}

TEST(Files, CanBeOnePerProcess) {
  const Scratch scratch;
  const std::string one = example("layer_swap") + " --width 256 --steps 2";
  const ProgramResult run = sealane({"run", "--emulate", "--stats", scratch.file("s.%p")},
                                    {"--", "sh", "-c", one + " && " + one});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.file(""))) {
    EXPECT_FALSE(read_json(entry.path()).is_discarded());
    ++files;
  }
  EXPECT_EQ(files, 2);
}

// Both have written when the one that began later ends first; nothing of it is left.
TEST(Files, OfTwoProcessesAtOnceAreThoseOfTheOneThatEndsLast) {
  const Scratch scratch;
  if (!can_exchange_names(scratch.file(""))) GTEST_SKIP() << "this file system exchanges no names";
  const std::string script =
      "cd \"$0\" && mkfifo a b && : > a.out && : > b.out || exit 1\n"
      "step() { yes s | head -n $1 | tr -d '\\n'; }\n"
      "await() { i=0; while [ $(wc -c < $1) -lt $2 ] && [ $i -lt 6000 ]; do sleep 0.05; "
      "i=$((i+1)); done; ls traces | wc -l; }\n"
      "'" SEALANE_ATTACHABLE
      "' < a > a.out & first=$!\n"
      "exec 3> a; step 3000 >&3; await a.out 3000\n"
      "'" SEALANE_ATTACHABLE
      "' < b > b.out & second=$!\n"
      "exec 4> b; step 2000 >&4; await b.out 2000\n"
      "printf e >&4; wait $second; printf e >&3; wait $first; ls traces";
  std::filesystem::create_directory(scratch.file("traces"));
  const ProgramResult run = sealane({"run", "--emulate", "--trace", scratch.file("traces/t")},
                                    {"--", "sh", "-c", script, scratch.file("")});
  EXPECT_EQ(run.out, "1\n2\nt\n") << run.err;
  const json trace = read_json(scratch.file("traces/t"));
  ASSERT_FALSE(trace.is_discarded()) << run.err;
  EXPECT_EQ(std::count_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                          [](const json& event) { return event.value("cat", "") == "copy"; }),
            6000);
}

// Runs a program that works for a long time under the flags, and sends it the signal as soon as
// the file is there. "ended True": it was the signal that ended it.
ProgramResult ended_by(const std::string& signal, std::vector<std::string> flags,
                       const std::string& file) {
  // Interactive shells do not, but others start what is in the background with SIGINT ignored.
  const std::string script =
      "import os, signal, subprocess, sys, time\n"
      "for s in (signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_DFL)\n"
      "p = subprocess.Popen(sys.argv[3:])\n"
      "for i in range(6000):\n"
      "  if os.path.exists(sys.argv[2].replace('%p', str(p.pid))): break\n"
      "  time.sleep(0.05)\n"
      "p.send_signal(getattr(signal, 'SIG' + sys.argv[1]))\n"
      "print('ended', -p.wait(200) == getattr(signal, 'SIG' + sys.argv[1]))\n";
  flags.insert(flags.begin(), {"run", "--emulate", "--metrics-seconds", "1"});
  return sealane(flags, {"--", "/usr/bin/python3", "-c", script, signal, file,
                         example("layer_swap"), "--width", "256", "--steps", "100000"});
}

// The program is ended while it works, by whatever a terminal or a service manager sends.
TEST(Files, AreWrittenWhenASignalEndsTheProgram) {
  for (const std::string signal : {"TERM", "INT", "HUP"}) {
    const Scratch scratch;
    const ProgramResult run = ended_by(signal,
                                       {"--stats", scratch.file("s"), "--trace", scratch.file("t"),
                                        "--metrics", scratch.file("m")},
                                       scratch.file("m"));
    EXPECT_NE(run.out.find("ended True"), std::string::npos) << signal << run.out << run.err;
    const json stats = read_json(scratch.file("s"));
    ASSERT_FALSE(stats.is_discarded()) << signal << run.err;
    EXPECT_GT(stats["to_device"]["copies"], 0) << signal;
    EXPECT_FALSE(read_json(scratch.file("t")).is_discarded()) << signal;
    EXPECT_NE(run.err.find("callers waited"), std::string::npos) << signal << run.err;
  }
}

// Whoever sends himself a signal that ends programs does not expect to go on.
TEST(Files, AreWrittenWhenTheProgramEndsItselfByASignal) {
  for (const std::string letter : {"t", "k"}) {
    for (int attempt = 0; attempt < 3; ++attempt) {  // both ways may have been a race
      const Scratch scratch;
      const ProgramResult run = sealane(
          {"run", "--emulate", "--stats", scratch.file("s")},
          {"--", "sh", "-c", "printf 's" + letter + "' | '" SEALANE_ATTACHABLE "'; echo $?"});
      EXPECT_EQ(run.out, "s143\n") << letter << run.err;
      EXPECT_EQ(read_json(scratch.file("s"))["to_host"]["copies"], 1) << letter << run.err;
    }
  }
}

// A handler that the program installed later, and that calls the one it found.
TEST(Files, AHandlerThatCallsTheOneBeforeIsCalledOnce) {
  const Scratch scratch;
  const ProgramResult run =
      sealane({"run", "--emulate", "--stats", scratch.file("s")},
              {"--", "sh", "-c", "printf she | '" SEALANE_ATTACHABLE "'; echo $?"});
  EXPECT_EQ(run.out, "s1\ne0\n") << run.err;
  EXPECT_EQ(read_json(scratch.file("s"))["to_host"]["copies"], 1) << run.err;
}

// As it comes back from signal(), or from a handler that has done its part.
TEST(Files, AreWrittenWhenTheProgramPutsTheHandlerBack) {
  for (const std::string letter : {"b", "v", "B"}) {
    const Scratch scratch;
    const ProgramResult run =
        sealane({"run", "--emulate", "--stats", scratch.file("s")},
                {"--", "sh", "-c", "printf s" + letter + " | '" SEALANE_ATTACHABLE "'; echo $?"});
    EXPECT_EQ(run.out, "s143\n") << letter << run.err;
    EXPECT_EQ(read_json(scratch.file("s"))["to_host"]["copies"], 1) << letter << run.err;
  }
}

// The program closed whatever it did not know, and the number belongs to a file of its own.
TEST(Files, OfTheProgramGetNothingWhenASignalEndsIt) {
  const Scratch scratch;
  const ProgramResult run =
      sealane({"run", "--emulate", "--stats", scratch.file("s")},
              {"--", "sh", "-c", "printf scot | '" SEALANE_ATTACHABLE "' \"$0\"; echo $?",
               scratch.file("own")});
  EXPECT_EQ(run.out, "sco143\n") << run.err;
  ASSERT_TRUE(std::filesystem::exists(scratch.file("own")));
  EXPECT_EQ(contents(scratch.file("own")), "");
}

TEST(Observe, LeavesItsPageWhenASignalEndsTheProgram) {
  for (const std::string signal : {"TERM", "INT", "HUP"}) {
    const Scratch scratch;
    const ProgramResult run = ended_by(signal, {"--observe", "--metrics", scratch.file("")},
                                       scratch.file("sealane-%p.prom"));
    EXPECT_NE(run.out.find("ended True"), std::string::npos) << signal << run.out << run.err;
    EXPECT_NE(run.err.find("Verdict"), std::string::npos) << signal << run.err;
  }
}

// One whose handler is its own ends as it wants to.
TEST(Files, AHandlerOfTheProgramIsItsOwn) {
  const Scratch scratch;
  const ProgramResult run =
      sealane({"run", "--emulate", "--stats", scratch.file("s")},
              {"--", "sh", "-c",
               "trap 'echo handled; exit 5' TERM; " + example("layer_swap") +
                   " --width 256 --steps 2 >/dev/null; kill -TERM $$; sleep 60"});
  EXPECT_EQ(run.exit_code, 5) << run.err;
  EXPECT_EQ(run.out, "handled\n");
}

TEST(Stats, OfAnUnpacedEmulationArePutBesideNoEstimate) {
  const Scratch scratch;
  const ProgramResult plain =
      sealane({"run", "--emulate", "--stats", scratch.file("s")}, kLayerSwap);
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(read_json(scratch.file("s"))["stock_estimate"]["comparable"], false);
  EXPECT_NE(plain.err.find("emulated at full speed: times say nothing"), std::string::npos)
      << plain.err;
  const ProgramResult paced = sealane({"run", "--emulate", "--platform", "h100-tdx", "--dilation",
                                       "5", "--stats", scratch.file("s")},
                                      kLayerSwap);
  EXPECT_EQ(read_json(scratch.file("s"))["stock_estimate"]["comparable"], true);
  EXPECT_NE(paced.err.find("(device time)"), std::string::npos) << paced.err;
}

// The kernel gives their numbers to the next files that are opened, which may be ours.
TEST(Files, OfAProgramWithoutStdinStdoutAndStderrDoNotHarmIt) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"run", "--emulate", "--stats"},
                                             {"run", "--emulate", "--trace"},
                                             {"run", "--emulate", "--observe", "--stats"},
                                             {"record", "--emulate", "-o"}}) {
    for (const std::string closed : {"<&- >&- 2>&-", ">&- 2>&-", "2>&-"}) {
      const Scratch scratch;
      std::vector<std::string> all = {"sh", "-c", "exec " + closed + "; exec \"$@\"", "sh",
                                      SEALANE_PROGRAM};
      all.insert(all.end(), words.begin(), words.end());
      all.insert(all.end(), {scratch.file("out"), "--", example("layer_swap_drv"), "--width", "256",
                             "--steps", "1", "--layers", "2"});
      const ProgramResult run = run_program(all);
      EXPECT_EQ(run.signal, 0) << words[2] << closed;
      EXPECT_NE(contents(scratch.file("out")), "") << words[2] << closed;
    }
  }
}

TEST(Files, ThatCannotBeWrittenAreSaidBeforeTheProgramRuns) {
  const ProgramResult run =
      sealane({"run", "--emulate", "--stats", "/nowhere/at/all"}, {"--", "echo", "ran"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace sealane::test
