// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "cli/manual.h"
#include "sealane_version.h"

namespace sealane::cli {
namespace {

// Text as it is: roff takes a line's first dot and every backslash for itself.
std::string roff(const std::string& text) {
  std::string out;
  bool first = true;
  for (const char c : text) {
    if (first && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    first = c == '\n';
  }
  return out;
}

std::string in_capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

bool has_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// What is not a flag is called what it is, not what it is called inside.
std::string option_entry(const CLI::Option& option) {
  if (option.get_positional()) {
    return ".TP\n\\fI" + roff(option.get_type_name()) + "\\fR\n" + roff(option.get_description()) +
           "\n";
  }
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) {
    names += (names.empty() ? "--" : ", --") + name;
  }
  std::string line = ".TP\n\\fB" + roff(names.empty() ? option.get_name() : names) + "\\fR";
  if (has_value(option)) line += " \\fI" + roff(option.get_type_name()) + "\\fR";
  return line + "\n" + roff(option.get_description()) + "\n";
}

// Options under the headings that --help has for them.
std::string options_of(const CLI::App& app) {
  std::vector<std::string> groups;
  for (const CLI::Option* option : app.get_options()) {
    const std::string& group = option->get_group();
    if (!group.empty() && std::find(groups.begin(), groups.end(), group) == groups.end()) {
      groups.push_back(group);
    }
  }
  std::string text;
  for (const std::string& group : groups) {
    text += group == "Options" ? ".SH OPTIONS\n" : ".SS " + roff(group) + "\n";
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() == group) text += option_entry(*option);
    }
  }
  return text;
}

std::string synopsis(const CommandPath& command) {
  std::string text = "\\fB" + roff(command.path) + "\\fR";
  if (!command.app->get_options().empty()) text += " [\\fIOPTIONS\\fR]";
  for (const CLI::Option* option : command.app->get_options()) {
    if (!option->get_positional()) continue;
    const std::string type = "\\fI" + roff(option->get_type_name()) + "\\fR";
    if (option->get_type_name() == "PROGRAM") {
      text += " " + roff("--") + " " + type + " [\\fIARGUMENT...\\fR]";
      continue;
    }
    text += option->get_required() ? " " + type : " [" + type + "]";
  }
  if (!commands_below(*command.app).empty()) {
    text += " \\fICOMMAND\\fR";
  }
  return text + "\n";
}

// Lines as they are, from the second column on: what fits 80 columns of --help fits them here too.
std::string as_it_is(const std::string& lines) {
  return ".in 2n\n.nf\n" + roff(lines) + ".fi\n.in\n";
}

// Sentences are filled, and begin a line where they did; what was set in stays as it is.
std::string prose(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  std::string set_in;
  bool ended = false;  // the line before, with its sentence
  const auto flush = [&] {
    if (!set_in.empty()) out += as_it_is(set_in);
    set_in.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ")) {
      set_in += line.substr(2) + '\n';
      ended = false;
      continue;
    }
    flush();
    if (line.empty()) {
      out += ".PP\n";
    } else {
      out += (ended ? ".br\n" : "") + roff(line) + "\n";
    }
    ended = line.ends_with('.');
  }
  flush();
  return out;
}

// What stands below the options of --help: examples first, where there are some, as lines that are
// set in.
std::string footer_of(const CLI::App& app) {
  std::istringstream lines(app.get_footer());
  std::string examples;
  std::string notes;
  bool among_examples = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "Examples:") {
      among_examples = true;
    } else if (among_examples && line.starts_with("  ")) {
      examples += line.substr(2) + '\n';
    } else {
      among_examples = false;
      if (!notes.empty() || !line.empty()) notes += line + '\n';
    }
  }
  return (examples.empty() ? "" : ".SH EXAMPLES\n" + as_it_is(examples)) +
         (notes.empty() ? "" : ".SH NOTES\n" + prose(notes));
}

std::string commands_of(const CLI::App& app) {
  const auto commands = commands_below(app);
  if (commands.empty()) return {};
  std::string text = ".SH COMMANDS\n";
  for (const CLI::App* command : commands) {
    text += ".TP\n\\fB" + roff(command->get_name()) + "\\fR\n" + roff(command->get_description()) +
            "\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_below(app)) names.push_back(command->get_name());
  return names;
}

std::vector<CommandPath> all_commands(const CLI::App& root) {
  std::vector<CommandPath> found = {{&root, root.get_name()}};
  for (size_t i = 0; i < found.size(); ++i) {
    const CommandPath above = found[i];
    for (const CLI::App* app : commands_below(*above.app)) {
      found.push_back({app, above.path + " " + app->get_name()});
    }
  }
  return found;
}

std::string man_page_name(const CommandPath& command) {
  std::string name = command.path;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page(const CLI::App& root, const CommandPath& command) {
  const std::string name = man_page_name(command);
  std::string text =
      fmt::format(".TH {} 1 \"\" \"sealane {}\" \"Sealane\"\n", in_capitals(name), SEALANE_VERSION);
  text += ".SH NAME\n" + roff(name) + " \\- " + roff(command.app->get_description()) + "\n";
  text += ".SH SYNOPSIS\n" + synopsis(command);
  text += commands_of(*command.app) + options_of(*command.app);
  text += footer_of(*command.app);
  text += ".SH SEE ALSO\n";
  std::string others;
  for (const CommandPath& other : all_commands(root)) {
    if (other.path == command.path) continue;
    others += (others.empty() ? "" : ",\n") + std::string("\\fB") + roff(man_page_name(other)) +
              "\\fR(1)";
  }
  return text + others + "\n";
}

}  // namespace sealane::cli
