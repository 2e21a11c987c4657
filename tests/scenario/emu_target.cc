// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "scenario/emu_target.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "support/run_program.h"
#include "workload/trace.h"

namespace sealane::test {
namespace {

class EmuObservation final : public Observation {
 public:
  EmuObservation(std::string violation, std::string error)
      : violation_(std::move(violation)), error_(std::move(error)) {}

  std::string violation() const override { return violation_; }
  std::string error() const override { return error_; }
  std::optional<uint64_t> counter(std::string_view) const override { return std::nullopt; }
  std::optional<Duration> elapsed() const override { return std::nullopt; }

 private:
  std::string violation_;
  std::string error_;
};

// The word sealane_emu_disturb() knows it by; empty: it has no meaning on a GPU.
std::string_view disturbance(ScenarioFault::Kind kind) {
  switch (kind) {
    case ScenarioFault::Kind::rotate:
      return "rotate";
    case ScenarioFault::Kind::driver_message:
      return "message";
    case ScenarioFault::Kind::stall:
      return "";  // of workers: the driver has none
    case ScenarioFault::Kind::flip:
      return "flip";
    case ScenarioFault::Kind::drop:
      return "drop";
    case ScenarioFault::Kind::repeat:
      return "duplicate";
    case ScenarioFault::Kind::swap:
      return "swap";
  }
  return "";
}

// A trace the player can read, gone when it is done.
class TraceFile {
 public:
  explicit TraceFile(const Scenario& scenario)
      : path_(std::filesystem::temp_directory_path() /
              concat("sealane-scenario-", scenario.name, "-", getpid(), ".trace")) {
    std::ofstream(path_) << workload::format_trace(scenario.program);
  }
  ~TraceFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// What follows `word` on the player's line that begins with it; empty if there is none.
std::string line_of(const std::string& out, const std::string& word) {
  const size_t at = out.starts_with(word) ? 0 : out.find("\n" + word);
  if (at == std::string::npos) return {};
  const size_t begin = out.find(word, at) + word.size();
  return out.substr(begin, out.find('\n', begin) - begin);
}

}  // namespace

Result<std::unique_ptr<Observation>> EmuTarget::run(const Scenario& scenario) {
  const TraceFile trace(scenario);
  std::vector<std::string> command = {SEALANE_SCENARIO_PLAYER, trace.path()};
  for (const ScenarioFault& fault : scenario.faults) {
    const std::string_view word = disturbance(fault.kind);
    if (!word.empty()) command.push_back(concat(fault.before, ":", word));
  }
  ProgramOptions options;
  options.environment = environment_;
  options.environment.push_back(concat("LD_LIBRARY_PATH=", SEALANE_EMU_DIR));
  options.environment.push_back("SEALANE_EMU_MEMORY=2G");
  options.environment.push_back(
      concat("SEALANE_EMU_CC=", scenario.setup.policy == "off" ? "off" : "on"));
  if (scenario.setup.queues > 0) {
    options.environment.push_back(concat("SEALANE_EMU_QUEUES=", scenario.setup.queues));
  }
  const ProgramResult played = run_program(command, options);
  if (played.exit_code != 0) {
    return internal_error(concat("the player ended with ", played.exit_code, " (signal ",
                                 played.signal, "): ", played.out, played.err));
  }
  return std::unique_ptr<Observation>(std::make_unique<EmuObservation>(
      line_of(played.out, "violation: "), line_of(played.out, "error: ")));
}

}  // namespace sealane::test
