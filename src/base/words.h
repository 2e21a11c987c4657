// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists in one line of text, as flags and variables have them. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace sealane {

// "a,b" by its commas: "a" and "b". Nothing behind the last separator is no word.
inline std::vector<std::string> split(std::string_view list, char separator) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const size_t end = std::min(list.find(separator), list.size());
    words.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

}  // namespace sealane
