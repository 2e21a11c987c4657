// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "scenario/emu_play.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "support/run_program.h"
#include "workload/trace.h"

namespace sealane::test {
namespace {

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

std::vector<std::string> environment_for(const ScenarioSetup& setup) {
  std::vector<std::string> made = {concat("LD_LIBRARY_PATH=", SEALANE_EMU_DIR),
                                   "SEALANE_EMU_MEMORY=2G",
                                   concat("SEALANE_EMU_CC=", setup.policy == "off" ? "off" : "on")};
  if (setup.queues > 0) made.push_back(concat("SEALANE_EMU_QUEUES=", setup.queues));
  return made;
}

// What follows `word` on the player's line that begins with it; empty if there is none.
std::string line_of(const std::string& out, const std::string& word) {
  const size_t at = out.starts_with(word) ? 0 : out.find("\n" + word);
  if (at == std::string::npos) return {};
  const size_t begin = out.find(word, at) + word.size();
  return out.substr(begin, out.find('\n', begin) - begin);
}

}  // namespace

ScratchFile::ScratchFile(const std::string& name)
    : path_(std::filesystem::temp_directory_path() /
            concat("sealane-scenario-", getpid(), "-", name)) {}

ScratchFile::~ScratchFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

std::string ScratchFile::text() const {
  std::ostringstream text;
  text << std::ifstream(path_).rdbuf();
  return text.str();
}

Result<Played> play_on_emulator(const Scenario& scenario, const PlayOptions& options) {
  const ScratchFile trace(scenario.name + ".trace");
  std::ofstream(trace.path()) << workload::format_trace(scenario.program);
  std::vector<std::string> command = {SEALANE_SCENARIO_PLAYER, trace.path(),
                                      concat("waits:", options.waits_percent)};
  for (const ScenarioFault& fault : scenario.faults) {
    const std::string_view word = disturbance(fault.kind);
    if (!word.empty()) command.push_back(concat(fault.before, ":", word));
  }
  ProgramOptions process;
  process.environment = environment_for(scenario.setup);
  process.environment.insert(process.environment.end(), options.environment.begin(),
                             options.environment.end());
  const ProgramResult played = run_program(command, process);
  if (played.exit_code != 0) {
    return internal_error(concat("the player ended with ", played.exit_code, " (signal ",
                                 played.signal, "): ", played.out, played.err));
  }
  return Played{line_of(played.out, "violation: "), line_of(played.out, "error: ")};
}

}  // namespace sealane::test
