// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a job of the emulator's test program (probe.h) in a process of its own, because a driver
// reads its configuration once.
#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace sealane::test {

inline ProgramResult probe(const std::string& job, std::vector<std::string> environment = {},
                           const std::string& library_path = SEALANE_EMU_DIR) {
  environment.push_back("LD_LIBRARY_PATH=" + library_path);
  environment.push_back("SEALANE_EMU_MEMORY=1G");
  return run_program({SEALANE_EMU_PROBE, job}, {.environment = environment, .input = {}});
}

// Runs a job with truth counters and gives them back.
inline nlohmann::json truth_of(const std::string& job, std::vector<std::string> environment,
                               ProgramResult& result) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test->test_suite_name()) + test->name();
  for (char& c : name) c = c == '/' ? '_' : c;
  const auto file = std::filesystem::temp_directory_path() / ("sealane-emu-" + name + ".json");
  environment.push_back("SEALANE_EMU_STATS=" + file.string());
  result = probe(job, environment);
  std::ifstream in(file);
  nlohmann::json truth = nlohmann::json::parse(in, nullptr, false);
  std::filesystem::remove(file);
  return truth;
}

}  // namespace sealane::test
