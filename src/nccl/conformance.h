// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What NCCL relies on in a network plugin, as checks that can fail. Each runs in processes of its
// own, so a plugin that crashes or hangs fails its check and nothing else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nccl/job.h"

namespace sealane::nccl {

struct Check {
  std::string_view name;
  std::string_view promise;  // what NCCL relies on, in one line
};

struct Finding {
  Check check;
  bool passed = false;
  std::string words;    // why not
  std::string figures;  // what was measured beside it; nothing depends on that
};

struct Subject {
  std::string path;
  int version = 0;  // 0: the newest it has
  std::vector<std::string> environment;
  uint64_t messages = 1000;  // of the longer checks
};

std::vector<Check> all_checks();

// One check by its name, which is one of all_checks().
Finding run_check(const Subject& subject, std::string_view name);

}  // namespace sealane::nccl
