// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/words.h"
#include "cli/manual.h"

namespace sealane::cli {
namespace {

// One flag of a command, and what may follow it.
struct Flag {
  std::string name;   // "--json"
  std::string about;  // one line
  bool takes_value;
  bool file;                       // the value is a file's name
  std::vector<std::string> words;  // or one of these
};

std::vector<std::string> words_of(const std::string& type) {
  if (type.find('|') == std::string::npos || type.find('[') != std::string::npos) return {};
  return split(type, '|');
}

std::vector<Flag> flags_of(const CLI::App& app) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const bool takes = option->get_items_expected_max() > 0;
    const bool file = type.starts_with("FILE") || type == "PATH" || type == "DIR" ||
                      type.ends_with(".html") || type.ends_with(".json");
    std::vector<std::string> names;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : names) {
      flags.push_back({name, option->get_description(), takes, file, words_of(type)});
    }
  }
  return flags;
}

// The flags of all commands whose value `wanted` takes, as patterns of "PATH FLAG".
template <typename Wanted>
std::string patterns(const CLI::App& root, Wanted wanted) {
  std::string out;
  for (const CommandPath& command : all_commands(root)) {
    for (const Flag& flag : flags_of(*command.app)) {
      if (!flag.takes_value || !wanted(flag)) continue;
      out += fmt::format("{}'{} {}'", out.empty() ? "" : "|", command.path, flag.name);
    }
  }
  return out.empty() ? "''" : out;
}

// Bash, and zsh by its emulation of bash's completion: the command that was typed so far decides.
std::string bash_script(const CLI::App& root) {
  std::string paths;
  std::string groups;  // commands that are nothing without another
  std::string words;
  std::string choices;
  for (const CommandPath& command : all_commands(root)) {
    if (command.app != &root)
      paths += fmt::format("{}'{}'", paths.empty() ? "" : "|", command.path);
    std::vector<std::string> offered = command_names(*command.app);
    if (!offered.empty()) groups += fmt::format("{}'{}'", groups.empty() ? "" : "|", command.path);
    for (const Flag& flag : flags_of(*command.app)) {
      offered.push_back(flag.name);
      if (flag.words.empty() || !flag.takes_value) continue;
      choices += fmt::format("    '{} {}') COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return ;;\n",
                             command.path, flag.name, fmt::join(flag.words, " "));
    }
    words += fmt::format("    '{}') words='{}' ;;\n", command.path, fmt::join(offered, " "));
  }
  std::string script = "_sealane() {\n";
  script += "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n";
  script += "  local path=sealane words= i\n";
  script += "  for ((i = 1; i < COMP_CWORD; i++)); do\n";
  script += "    if [ \"${COMP_WORDS[i]}\" = -- ]; then\n";
  script += "      COMPREPLY=($(compgen -c -- \"$cur\") $(compgen -f -- \"$cur\")); return\n";
  script += "    fi\n";
  script += "    case \"$path ${COMP_WORDS[i]}\" in\n";
  script += "      " + paths + ") path=\"$path ${COMP_WORDS[i]}\" ;;\n    esac\n  done\n";
  script += "  case \"$path $prev\" in\n" + choices;
  script += "    " + patterns(root, [](const Flag& flag) { return flag.file; }) +
            ") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n";
  script += "    " +
            patterns(root, [](const Flag& flag) { return !flag.file && flag.words.empty(); }) +
            ") return ;;\n  esac\n";
  script += "  case \"$path\" in\n" + words + "  esac\n";
  script += "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n";
  // A command's own arguments are files; one that has commands below it has none.
  script += "  case \"$path\" in " + groups + ") return ;; esac\n";
  script += "  case \"$cur\" in -*) ;; *) COMPREPLY+=($(compgen -f -- \"$cur\")) ;; esac\n";
  return script + "}\ncomplete -F _sealane sealane\n";
}

std::string quoted(std::string text) {
  std::string out;
  for (const char c : text)
    out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return "'" + out + "'";
}

std::string fish_script(const CLI::App& root) {
  std::string script = "complete -c sealane -f\n";
  for (const CommandPath& command : all_commands(root)) {
    const std::vector<std::string> below = command_names(*command.app);
    std::string when = command.app == &root
                           ? "__fish_use_subcommand"
                           : "__fish_seen_subcommand_from " + command.app->get_name();
    if (command.app != &root && !below.empty()) {
      when += fmt::format("; and not __fish_seen_subcommand_from {}", fmt::join(below, " "));
    }
    for (const CLI::App* one : commands_below(*command.app)) {
      script += fmt::format("complete -c sealane -n {} -a {} -d {}\n", quoted(when),
                            one->get_name(), quoted(one->get_description()));
    }
    for (const Flag& flag : flags_of(*command.app)) {
      const bool is_long = flag.name.starts_with("--");
      script += fmt::format("complete -c sealane -n {} {} {} {}{}-d {}\n", quoted(when),
                            is_long ? "-l" : "-s", flag.name.substr(is_long ? 2 : 1),
                            flag.file          ? "-r -F "
                            : flag.takes_value ? "-x "
                                               : "",
                            flag.words.empty() || !flag.takes_value
                                ? ""
                                : fmt::format("-a '{}' ", fmt::join(flag.words, " ")),
                            quoted(flag.about));
    }
  }
  return script;
}

}  // namespace

std::string completion_script(const CLI::App& root, const std::string& shell) {
  if (shell == "bash") return bash_script(root);
  if (shell == "zsh") {
    return "#compdef sealane\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(root);
  }
  return shell == "fish" ? fish_script(root) : "";
}

}  // namespace sealane::cli
