// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "scenario/words.h"

#include <array>
#include <charconv>
#include <sstream>

#include "base/bytes.h"

namespace sealane::test {
namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};
constexpr std::array kSizes = {Unit{"", 1}, Unit{"K", 1_KiB}, Unit{"M", 1_MiB}};
constexpr std::array kTimes = {Unit{"ns", 1}, Unit{"us", 1'000}, Unit{"ms", 1'000'000}};

template <typename Units>
std::optional<uint64_t> parse_amount(std::string_view text, const Units& units) {
  uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || number > 1'000'000'000) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (unit.name == text) return number * unit.factor;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Line> split_lines(std::string_view text, std::string& title) {
  std::vector<Line> lines;
  std::istringstream in{std::string(text)};
  std::string line;
  for (size_t number = 1; std::getline(in, line); ++number) {
    if (line.starts_with("# ") && title.empty()) title = line.substr(2);
    std::istringstream words(line.substr(0, line.find('#')));
    Line found{number, {}};
    for (std::string word; words >> word;) found.words.push_back(word);
    if (!found.words.empty()) lines.push_back(std::move(found));
  }
  return lines;
}

std::optional<uint64_t> parse_size(std::string_view text) { return parse_amount(text, kSizes); }

std::optional<Duration> parse_time(std::string_view text) {
  const auto ns = parse_amount(text, kTimes);
  if (!ns) return std::nullopt;
  return Duration(static_cast<int64_t>(*ns));
}

bool Words::take(std::string_view expected) {
  if (done() || line_->words[next_] != expected) return false;
  ++next_;
  return true;
}

std::optional<uint64_t> Words::take_size() {
  const auto found = done() ? std::nullopt : parse_size(line_->words[next_]);
  if (found) ++next_;
  return found;
}

std::optional<uint64_t> Words::number() { return parse_amount(word(), std::array{Unit{"", 1}}); }

}  // namespace sealane::test
