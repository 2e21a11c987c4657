// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/help_format.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "cli/manual.h"

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
  std::string name = make_option_name(option, is_positional);
  std::string rest = make_option_opts(option);
  rest.resize(std::min(rest.size(), rest.find(" Excludes:")));
  // A list says so once, by its commas.
  if (option->get_delimiter() != '\0' && rest.ends_with(" ...")) rest.resize(rest.size() - 4);
  if (is_positional) {
    name = option->get_type_name();
    rest = option->get_items_expected_max() > 1 ? " ..." : "";
  } else if (const size_t usual = name.find('{'); usual != std::string::npos) {  // may be left out
    name.resize(usual);
    rest = "[=" + option->get_type_name() + "]";
  }
  return two_columns(name + rest, make_option_desc(option));
}

// As people type it: a program comes after --.
std::string HelpFormat::make_usage(const CLI::App* app, std::string name) const {
  std::string line = "Usage: " + std::move(name);
  if (!app->get_options().empty()) line += " [OPTIONS]";
  for (const CLI::Option* option : app->get_options()) {
    if (!option->get_positional()) continue;
    const std::string type = option->get_type_name();
    if (type == "PROGRAM") {
      line += " -- PROGRAM [ARGUMENT...]";
    } else {
      const std::string words = type + (option->get_items_expected_max() > 1 ? "..." : "");
      line += option->get_required() ? " " + words : " [" + words + "]";
    }
  }
  if (!commands_below(*app).empty()) line += " COMMAND";
  return line + "\n";
}

std::string HelpFormat::make_help(const CLI::App* app, std::string name,
                                  CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  for (size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  return two_columns(command->get_display_name(true), command->get_description());
}

}  // namespace sealane::cli
