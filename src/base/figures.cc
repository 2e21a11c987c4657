// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/figures.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/text.h"

namespace sealane {
namespace {

// Three digits that matter, if there are that many before the point.
std::string three_digits(double value) {
  return fixed(value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

}  // namespace

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return "-";
  std::array<char, 400> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 std::chars_format::fixed, decimals);
  return std::string(digits.data(), end.ptr);
}

std::string grouped(uint64_t value) {
  std::string out = concat(value);
  for (size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, 1, ',');
  return out;
}

std::string percent_of(double part, double whole) {
  return whole > 0 ? concat(fixed(100 * part / whole, 1), " %") : "-";
}

std::string bytes_text(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {" B", " KiB", " MiB", " GiB", " TiB"};
  if (bytes < 1024) return concat(bytes, kUnits[0]);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return concat(three_digits(value), kUnits[unit]);
}

std::string time_text(double seconds) {
  if (seconds == 0) return "0";
  if (seconds < 1e-3) return concat(three_digits(seconds * 1e6), " us");
  if (seconds < 1) return concat(three_digits(seconds * 1e3), " ms");
  return concat(three_digits(seconds), " s");
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string indented(std::string text, size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string wrapped(const std::string& text, size_t indent, size_t columns) {
  constexpr const char* kSpaces = " \n\t";
  std::string out;
  size_t at = indent;
  for (size_t begin = text.find_first_not_of(kSpaces); begin != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(kSpaces, begin), text.size());
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    begin = text.find_first_not_of(kSpaces, end);
    const size_t width = columns_of(word);
    if (at > indent && at + 1 + width > columns) {
      out += '\n' + std::string(indent, ' ');
      at = indent;
    }
    if (at > indent) {
      out += ' ';
      ++at;
    }
    out += word;
    at += width;
  }
  return out + '\n';
}

}  // namespace sealane
