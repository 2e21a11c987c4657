// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command.h"

#include <fmt/ranges.h>

#include <charconv>

#include "estimate/interval.h"

namespace sealane::cli {
namespace {

constexpr uint64_t kDrawsMost = 1'000;

template <typename Number>
FlagCheck number_between(Number least, Number most) {
  return [least, most](const std::string& text) -> std::string {
    Number value = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    const bool is_one = read.ec == std::errc() && read.ptr == end && value >= least;
    if (is_one && value <= most) return {};
    return fmt::format("'{}' is not a number from {} to {}", text, least, most);
  };
}

}  // namespace

CLI::Option* add_output(CLI::App& command, const std::string& flag, std::string& path,
                        const std::string& help) {
  return add_value(command, flag, path, "FILE", help)->check(&check_output_name);
}

CLI::Option* add_json(CLI::App& command, std::string& path) {
  return add_output(command, "--json", path, "Write results for programs; - is stdout, no table");
}

void add_draws(CLI::App& command, uint32_t& to) {
  const auto check = [](const std::string& text) -> std::string {
    if (text == "0" || whole_number(estimate::kDraws, kDrawsMost)(text).empty()) return {};
    return fmt::format("'{}' is neither 0 nor a number from {} to {}", text, estimate::kDraws,
                       kDrawsMost);
  };
  add_value(command, "--draws", to, "N",
            "Runs with numbers drawn from their spreads, for the intervals [9]; 0: none")
      ->check(check);
}

FlagCheck whole_number(uint64_t least, uint64_t most) { return number_between(least, most); }
FlagCheck real_number(double least, double most) { return number_between(least, most); }

FlagCheck one_of(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string& word) -> std::string {
    if (std::find(words.begin(), words.end(), word) != words.end()) return {};
    return fmt::format("unknown '{}'{}", word, did_you_mean(word, words));
  };
}

std::string check_output_name(const std::string& path) {
  return path.empty() ? "the name of the file is empty" : "";
}

std::string check_program_output_name(const std::string& path) {
  if (path != "-") return check_output_name(path);
  return "stdout is the program's own; name a file (./- if it is to be called so), or /dev/stderr";
}

size_t edit_distance(std::string_view from, std::string_view to) {
  // Three rows of the classic table: two back, one back, current.
  std::vector<size_t> before(to.size() + 1);
  std::vector<size_t> previous(to.size() + 1);
  std::vector<size_t> current(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replace = previous[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[to.size()];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const auto nearest =
      std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
        return edit_distance(word, a) < edit_distance(word, b);
      });
  // The dashes of an option are no likeness.
  const auto letters = [](const std::string& name) {
    return name.size() - std::min(name.find_first_not_of('-'), name.size());
  };
  if (nearest != names.end() && edit_distance(word, *nearest) <= 1 + letters(*nearest) / 3) {
    return fmt::format("; did you mean '{}'?", *nearest);
  }
  return fmt::format("; there are: {}", fmt::join(names, ", "));
}

Error unknown(const std::string& what, const std::string& name,
              const std::vector<std::string>& names) {
  return usage_error(
      fmt::format("--{0}: unknown {0} '{1}'{2}", what, name, did_you_mean(name, names)));
}

}  // namespace sealane::cli
