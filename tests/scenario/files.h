// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The scenario files there are, for tests that run them all.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "scenario/scenario.h"

namespace sealane::test {

inline std::vector<std::string> scenario_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(SEALANE_SCENARIOS)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// As a test is named.
inline std::string stem_of(const std::string& file) {
  std::string name = std::filesystem::path(file).stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

inline std::string scenario_name(const testing::TestParamInfo<std::string>& tested) {
  return stem_of(tested.param);
}

}  // namespace sealane::test
