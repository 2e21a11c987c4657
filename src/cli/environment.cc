// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/environment.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "cli/suggest.h"

namespace sealane::cli {

std::vector<std::string> unknown_environment() {
  static const std::vector<std::string> known = {
      "SEALANE_AEAD",       // which engine seals
      "SEALANE_DEBUG",      // log level
      "SEALANE_PLATFORMS",  // directory of platform files
      "SEALANE_NO_APT",     // the Makefile's: never install packages
  };
  std::vector<std::string> warnings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view name = *entry;
    name = name.substr(0, name.find('='));
    if (!name.starts_with("SEALANE_")) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    warnings.push_back(fmt::format("sealane: warning: nothing reads the variable {}{}", name,
                                   did_you_mean(name, known)));
  }
  return warnings;
}

}  // namespace sealane::cli
