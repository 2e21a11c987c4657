// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/copy_trial.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>

#include "base/try.h"
#include "bench/scratch.h"

namespace sealane::bench {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::minutes(10);  // a crowded machine, a large dilation

[[noreturn]] void become_example(const std::vector<std::string>& command,
                                 const CopySetting::Entering& enter, const std::string& log) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // an interrupted benchmark leaves nothing behind
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  enter();
  let_signals_end_this_process();
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(words[0], words.data());
  _exit(127);
}

Status run_to_end(const std::vector<std::string>& command, const CopySetting::Entering& enter,
                  const std::string& log) {
  const pid_t child = fork();
  if (child < 0) return io_error("cannot start an example", errno);
  if (child == 0) become_example(command, enter, log);
  const auto deadline = Clock::now() + kPatience;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    const bool stop = interrupted();
    if (stop || Clock::now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      if (stop) return io_error("interrupted");
      return internal_error(fmt::format("{} did not end within {} s", command[0],
                                        std::chrono::seconds(kPatience).count()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return internal_error(fmt::format("{} failed: {}", command[0], last_line(log)));
}

Result<json> read_json(const std::string& file) {
  std::ifstream in(file);
  json found = json::parse(in, nullptr, false);
  if (found.is_discarded()) return internal_error(fmt::format("{} is no JSON", file));
  return found;
}

void add_counters(CopyRun& run, const json& counters, bool timed_only) {
  // Of the part that is timed: what comes before is learned from.
  const json& timed = counters.contains("profiled") ? counters.at("profiled") : counters;
  const json& counted = timed_only ? timed : counters;
  for (const char* direction : {"to_device", "to_host"}) {
    const json& one = counted.at(direction);
    run.copies += one.at("copies").get<uint64_t>();
    run.bytes += one.at("bytes").get<uint64_t>();
    run.blocked_s += one.at("blocked_s").get<double>();
  }
  run.waits_s = counted.at("waits").at("blocked_s");
  if (timed.contains("speculation")) run.hit_rate = timed.at("speculation").at("foreseen_rate");
}

std::string base_of(const CopyExample& example, const CopyPolicy& policy,
                    const CopySetting& setting) {
  return setting.scratch + "/" + example.name + "." + policy.name;
}

}  // namespace

// Sizes for a run of a second at most; the regime is what counts, and it is the examples'
// own.
const std::vector<CopyExample>& copy_examples() {
  static const std::vector<CopyExample> all = {
      {"layer_swap", "layer_swap", {"--warmup", "6", "--steps", "4"}},
      {"kv_swap", "kv_swap", {"--steps", "3"}},
      // Steps of 50 to 100 us, here and in vllm: waking a thread must not weigh in them.
      {"decode_loop", "decode_loop", {"--steps", "120"}, "100"},
      {"mini_llm-flexgen",
       "mini_llm",
       {"--schedule", "flexgen", "--steps", "4", "--verify", "off"}},
      {"mini_llm-vllm",
       "mini_llm",
       {"--schedule", "vllm", "--steps", "24", "--verify", "off"},
       "100"},
      {"mini_llm-peft", "mini_llm", {"--schedule", "peft", "--steps", "2", "--verify", "off"}},
  };
  return all;
}

const std::vector<CopyPolicy>& copy_policies() {
  static const std::vector<CopyPolicy> all = {
      // Watched as the others are, so that a caller's waiting means the same for all.
      {"off", false, "none"},
      {"stock", true, "none"},
      {"engine", true, "engine"},
      {"async", true, "engine,async"},
      {"parallel", true, {}, "parallel"},
      {"speculate", true, {}, "speculate"},
      {"sealane", true, {}, "sealane"},
  };
  return all;
}

CopyFiles files_of(const CopyExample& example, const CopyPolicy& policy,
                   const CopySetting& setting) {
  const std::string base = base_of(example, policy, setting);
  return {base + ".counters.json", base + ".truth.json", base + ".trace"};
}

Result<CopyRun> run_copy_example(const CopyExample& example, const CopyPolicy& policy,
                                 const CopySetting& setting) {
  const std::string base = base_of(example, policy, setting);
  const std::string figures = base + ".json";
  const CopyFiles files = files_of(example, policy, setting);
  SEALANE_LET(const auto enter, setting.under(setting, example, policy, files));

  const bool whole = example.program.starts_with('/');
  std::vector<std::string> command = {(whole ? "" : setting.examples + "/") + example.program};
  if (access(command[0].c_str(), X_OK) != 0) return io_error("cannot run " + command[0], errno);
  command.insert(command.end(), example.arguments.begin(), example.arguments.end());
  command.insert(command.end(), {"--json", figures});
  SEALANE_TRY(run_to_end(command, enter, base + ".log"));

  SEALANE_LET(const auto told, read_json(figures));
  SEALANE_LET(const auto counted, read_json(files.counters));
  CopyRun run;
  run.total_s = told.at("total_s");
  run.tokens_per_s = told.at("tokens_per_s");
  run.hash = told.at("hash");
  run.about = told.value("about", "");
  add_counters(run, counted, example.timed_only);
  SEALANE_LET(const auto true_figures, read_json(files.truth));
  run.overrun = true_figures.at("overrun_ns").get<double>() /
                std::max(1.0, true_figures.at("real_ns").get<double>());
  return run;
}

}  // namespace sealane::bench
