// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "scenario/scenario.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace sealane::test {

Scenario Scenario::prefix(size_t operations) const {
  Scenario result = *this;
  result.program.resize(std::min(operations, program.size()));
  std::erase_if(result.faults, [&](const ScenarioFault& f) { return f.before >= operations; });
  return result;
}

Result<Scenario> load_scenario(const std::string& path) {
  std::ifstream file(path);
  if (!file) return usage_error(path + ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_scenario(text.str(), path);
}

}  // namespace sealane::test
