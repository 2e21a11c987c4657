// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A directory that goes away with the test, and what its files say.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "support/scratch.h"

namespace sealane::test {

inline std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace sealane::test
