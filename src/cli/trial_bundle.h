// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a trial can send away: what was found, without keys, data, output or arguments of the
// program, and without names of places and people. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

#include "cli/trial_text.h"

namespace sealane::cli {

struct TarMember {
  std::string name;  // at most 100 bytes
  std::string content;
  std::string what{};  // for people; not in the file
};

// In the format that tar(1) reads (POSIX ustar). The same members give the same bytes: no owner, no
// time.
std::string tar_of(const std::vector<TarMember>& members);

struct TrialRecords {
  nlohmann::json doctor;  // discarded or null: none
  ObservedPage observed;
  std::vector<std::pair<std::string, nlohmann::json>> statistics;  // by the name of the run
};

// Its first member lists all of them.
std::vector<TarMember> trial_bundle(const nlohmann::json& trial, const TrialRecords& records,
                                    const Private& names);

}  // namespace sealane::cli
