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

// Text of any language made fit for a terminal: '?' for control characters, those beyond ASCII too
// (U+0080 to U+009F), and for what turns the direction of writing. UTF-8 is left alone otherwise.
inline std::string visible(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto at = [&](size_t ahead) {
      return i + ahead < text.size() ? static_cast<unsigned char>(text[i + ahead]) : 0u;
    };
    const bool second_set = at(0) == 0xc2 && at(1) >= 0x80 && at(1) <= 0x9f;
    const bool turns = at(0) == 0xe2 && ((at(1) == 0x80 && at(2) >= 0xaa && at(2) <= 0xae) ||
                                         (at(1) == 0x81 && at(2) >= 0xa6 && at(2) <= 0xa9));
    if (second_set || turns) {
      out += '?';
      i += second_set ? 1 : 2;
    } else {
      out += at(0) < 0x20 || at(0) == 0x7f ? '?' : text[i];
    }
  }
  return out;
}

}  // namespace sealane
