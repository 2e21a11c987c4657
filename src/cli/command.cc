// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/byte_count.h"
#include "base/words.h"
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

// Of a flag that has no check of its own. An empty value would mean what no value means, and a
// number that does not fit would be another one.
template <typename Value>
FlagCheck usual_check() {
  if constexpr (std::is_unsigned_v<Value>) {
    return number_between<Value>(0, std::numeric_limits<Value>::max());
  }
  return [](const std::string& text) { return text.empty() ? "is empty" : ""; };
}

template <typename Value>
constexpr bool kIsList = false;
template <typename Item>
constexpr bool kIsList<std::vector<Item>> = true;

}  // namespace

const Option& Option::required() const {
  option_->required();
  return *this;
}

const Option& Option::needs(const std::string& flag) const {
  option_->needs(flag);
  return *this;
}

const Option& Option::excludes(const std::vector<std::string>& flags) const {
  for (const std::string& flag : flags) option_->excludes(flag);
  return *this;
}

bool Option::given() const { return option_->count() > 0; }

std::string Option::text() const { return option_->results().front(); }

Command Command::command(const std::string& name, const std::string& what) const {
  return {*app_->add_subcommand(name, what), *invocation_};
}

Command Command::group(const std::string& name, const std::string& what) const {
  const Command made = command(name, what);
  made.app_->require_subcommand(1);
  return made;
}

void Command::job(std::function<Status()> job) const {
  app_->callback([job = std::move(job), to = invocation_] { to->job = job; });
}

void Command::footer(const std::string& text) const { app_->footer(text); }

Command Command::titled(const std::string& title) const {
  Command same = *this;
  same.title_ = title;
  return same;
}

Option Command::declared(CLI::Option& option) const {
  if (!title_.empty()) option.group(title_);
  return Option(option);
}

template <typename Value>
Option Command::value(const std::string& flag, Value& to, const std::string& takes,
                      const std::string& help, const FlagCheck& check) const {
  CLI::Option* option = app_->add_option(flag, to, help)->type_name(takes);
  if (check) {
    option->check(check);
  } else if (flag.starts_with('-')) {
    option->check(usual_check<Value>());
  }
  if constexpr (kIsList<Value>) {
    const bool in_one_word = takes.find(',') != std::string::npos;
    if (in_one_word) option->delimiter(',');
    if (!in_one_word && !option->get_positional()) option->allow_extra_args(false);
  }
  return declared(*option);
}

// What the commands' flags are.
#define SEALANE_VALUE(type)                                                     \
  template Option Command::value(const std::string&, type&, const std::string&, \
                                 const std::string&, const FlagCheck&) const;
SEALANE_VALUE(std::string)
SEALANE_VALUE(int)
SEALANE_VALUE(uint32_t)
SEALANE_VALUE(uint64_t)
SEALANE_VALUE(double)
SEALANE_VALUE(std::optional<uint64_t>)
SEALANE_VALUE(std::optional<double>)
SEALANE_VALUE(std::vector<std::string>)
#undef SEALANE_VALUE

Option Command::word(const std::string& flag, const std::string& words, const std::string& help,
                     const std::function<void(size_t)>& set) const {
  std::vector<std::string> all = split(words, '|');
  const auto found = [all, set](const std::string& word) {
    set(static_cast<size_t>(std::find(all.begin(), all.end(), word) - all.begin()));
  };
  CLI::Option* option = app_->add_option_function<std::string>(flag, found, help);
  return declared(*option->type_name(words)->check(one_of(all)));
}

Option Command::bytes(const std::string& flag, uint64_t& to, uint64_t most,
                      const std::string& takes, const std::string& help) const {
  const auto read = [&to, most](const std::string& text) { to = *parse_byte_count(text, most); };
  const auto check = [most](const std::string& text) {
    const auto amount = parse_byte_count(text, most);
    return amount ? "" : amount.error().message;
  };
  CLI::Option* option = app_->add_option_function<std::string>(flag, read, help);
  return declared(*option->type_name(takes)->check(check));
}

Option Command::flag(const std::string& flag, bool& to, const std::string& help) const {
  // Else --observe=-1, or =off, would be the flag not given. Without a word it reads "true".
  const auto check = [](const std::string& word) -> std::string {
    return word == "true" ? "" : fmt::format("takes no value, but is given '{}'", word);
  };
  return declared(*app_->add_flag(flag, to, help)->check(check));
}

Option Command::flag(const std::string& flag, std::string& to, const std::string& usual,
                     const std::string& words, const std::string& help) const {
  CLI::Option* option = app_->add_flag(fmt::format("{}{{{}}}", flag, usual), to, help);
  return declared(*option->type_name(words)->check(one_of(split(words, '|'))));
}

Option Command::output(const std::string& flag, std::string& path, const std::string& help,
                       const FlagCheck& check) const {
  return value(flag, path, "FILE", help, check);
}

void Command::json(std::string& path) const {
  output("--json", path, "Write results for programs; - is stdout, no table");
}

void Command::draws(uint32_t& to) const {
  const auto check = [](const std::string& text) -> std::string {
    if (text == "0" || whole_number(estimate::kDraws, kDrawsMost)(text).empty()) return {};
    return fmt::format("'{}' is neither 0 nor a number from {} to {}", text, estimate::kDraws,
                       kDrawsMost);
  };
  value("--draws", to, "N",
        "Runs with numbers drawn from their spreads, for the intervals [9]; 0: none", check);
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
