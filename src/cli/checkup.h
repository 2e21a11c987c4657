// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Findings about a machine, and how people and programs get to see them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "os/machine.h"

namespace sealane::cli {

enum class Verdict { ok, warn, fail };

struct Finding {
  std::string area;
  std::string name;
  Verdict verdict = Verdict::ok;
  std::string detail;  // what was found
  std::string advice;  // what to do about it; not empty unless ok
};

struct Checkup {
  std::vector<Finding> findings;  // those of one area together
  std::string outlook;            // what to expect of this machine, in plain words

  size_t count(Verdict verdict) const;
};

struct TextStyle {
  size_t columns = 80;
  bool colour = false;
};

// What this CPU lacks of the instructions that sealing is fast with, in words, said beside what was
// measured, because ratios of one CPU are not another's. What SEALANE_CPU hides from the engines
// (base/cpu.h) counts as missing. A line of at most 80 columns each; none if nothing is missing.
std::vector<std::string> cpu_gaps(const Cpu& cpu);

// Page guards, tried on memory of each kind rather than guessed from versions.
std::vector<Finding> try_page_guards();

// Lines of at most style.columns columns, except where one word is longer.
std::string to_text(const Checkup& checkup, const TextStyle& style);

// "checks", "outlook" and "summary".
nlohmann::json to_json(const Checkup& checkup);

}  // namespace sealane::cli
