// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Programs on the emulated GPU, started as a user would, with somebody watching.
#pragma once

#include <nlohmann/json.hpp>

#include <chrono>
#include <string>
#include <vector>

#include "support/run_program.h"
#include "watch/scratch.h"

namespace sealane::test {

inline ProgramResult sealane(std::vector<std::string> words, const std::vector<std::string>& rest) {
  words.insert(words.begin(), SEALANE_PROGRAM);
  words.insert(words.end(), rest.begin(), rest.end());
  return run_program(words);
}

inline nlohmann::json read_json(const std::string& path) {
  return nlohmann::json::parse(contents(path), nullptr, false);
}

inline std::string example(const std::string& name) { return SEALANE_EXAMPLES_DIR "/" + name; }

// A page whose lines do not matter: every space and end of line is one space.
inline std::string unwrapped(const std::string& page) {
  std::string out;
  for (const char c : page) {
    const bool space = c == ' ' || c == '\n';
    if (!space) out += c;
    if (space && !out.ends_with(' ')) out += ' ';
  }
  return out;
}

// The value of a line "name   value" in what an example printed.
inline std::string printed(const std::string& out, const std::string& name) {
  const size_t at = out.find("\n" + name + " ");
  if (at == std::string::npos) return "";
  const size_t begin = out.find_first_not_of(' ', at + 1 + name.size());
  return out.substr(begin, out.find('\n', begin) - begin);
}

}  // namespace sealane::test
