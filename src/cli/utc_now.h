// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// When something was measured or foretold, for people.
#pragma once

#include <ctime>
#include <string>

namespace sealane::cli {

inline std::string utc_now(const char* format) {  // strftime's
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &utc)};
}

}  // namespace sealane::cli
