// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One line of text from pieces, for error messages in the rooms the preload is made of (they link
// no formatting library). Text that a peer sent goes through printable() where it enters.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace sealane {

inline void append_text(std::string& out, std::string_view piece) { out += piece; }
inline void append_text(std::string& out, char piece) { out += piece; }

template <std::integral Int>
void append_text(std::string& out, Int value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

// concat("lane ", 3, ": gap of ", 2) == "lane 3: gap of 2"
template <typename... Pieces>
std::string concat(const Pieces&... pieces) {
  std::string out;
  (append_text(out, pieces), ...);
  return out;
}

// Text from elsewhere made fit for a message: at most `length_max` characters, and '?' for whatever
// is not printable ASCII.
inline std::string printable(std::string_view text, size_t length_max) {
  std::string out(text.substr(0, length_max));
  for (char& c : out) c = c >= ' ' && c <= '~' ? c : '?';
  return out;
}

}  // namespace sealane
