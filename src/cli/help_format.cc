// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/help_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

namespace sealane::cli {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kTextAt = 30;  // where descriptions begin

std::string two_columns(const std::string& name, const std::string& description) {
  std::string out;
  std::string line = "  " + name;
  const auto begin_line = [&] {
    out += line + '\n';
    line = std::string(kTextAt - 1, ' ');
  };
  if (line.size() >= kTextAt) begin_line();
  line.resize(kTextAt - 1, ' ');
  std::istringstream words(description);
  for (std::string word; words >> word;) {
    if (line.size() >= kTextAt && line.size() + 1 + word.size() > kColumns) begin_line();
    line += ' ' + word;
  }
  return out + line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
}

}  // namespace

// Which flags do not go together is said when somebody tries.
std::string HelpFormat::make_option(const CLI::Option* option, bool is_positional) const {
  std::string rest = make_option_opts(option);
  rest.resize(std::min(rest.size(), rest.find(" Excludes:")));
  if (rest.ends_with(",... ...")) rest.resize(rest.size() - 4);  // a list says so once
  return two_columns(make_option_name(option, is_positional) + rest, make_option_desc(option));
}

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  return two_columns(command->get_display_name(true), command->get_description());
}

}  // namespace sealane::cli
