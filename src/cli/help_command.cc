// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane help: what --help of a command says, its man page, or completions for a shell.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/command.h"
#include "cli/manual.h"
#include "report/output.h"

namespace sealane::cli {
namespace {

struct Flags {
  std::vector<std::string> topic;  // the words of a command
  bool man = false;
  std::string shell;
  std::string directory;
};

Result<CommandPath> find_command(const CLI::App& root, const std::vector<std::string>& words) {
  CommandPath found{&root, root.get_name()};
  for (const std::string& word : words) {
    const std::vector<std::string> known = command_names(*found.app);
    const CLI::App* next = nullptr;
    for (const CLI::App* app : commands_below(*found.app)) {
      if (app->get_name() == word) next = app;
    }
    if (next == nullptr) {
      return usage_error(known.empty() ? fmt::format("'{}' has no commands", found.path)
                                       : fmt::format("'{}' has no command '{}'{}", found.path, word,
                                                     did_you_mean(word, known)));
    }
    found = {next, found.path + " " + word};
  }
  return found;
}

// Where packages put them, below a prefix's share.
Status write_all(const CLI::App& root, const std::string& share) {
  std::vector<std::pair<std::string, std::string>> files = {
      {"bash-completion/completions/sealane", completion_script(root, "bash")},
      {"zsh/site-functions/_sealane", completion_script(root, "zsh")},
      {"fish/vendor_completions.d/sealane.fish", completion_script(root, "fish")}};
  for (const CommandPath& command : all_commands(root)) {
    files.emplace_back("man/man1/" + man_page_name(command) + ".1", man_page(root, command));
  }
  for (const auto& [name, text] : files) {
    const std::filesystem::path path = std::filesystem::path(share) / name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) return io_error("cannot make " + path.parent_path().string(), error.value());
    SEALANE_TRY(report::write_file(path.string(), text));
  }
  return {};
}

Status help(const CLI::App& root, const Flags& flags) {
  if (!flags.directory.empty()) return write_all(root, flags.directory);
  if (!flags.shell.empty()) return report::write_file("-", completion_script(root, flags.shell));
  SEALANE_LET(const auto command, find_command(root, flags.topic));
  if (flags.man) return report::write_file("-", man_page(root, command));
  // App::help() would tell of the command that was typed, which is this one.
  const auto format = command.app->get_formatter();
  return report::write_file(
      "-", format->make_help(command.app, command.path, CLI::AppFormatMode::Normal));
}

}  // namespace

void add_help(const Command& root, const CLI::App& all) {
  const Command command = root.command("help", "Help on a command, man pages, shell completions");
  const auto flags = std::make_shared<Flags>();
  command.value("topic", flags->topic, "COMMAND", "The command, as in: sealane help bench seal");
  command.flag("--man", flags->man, "Its man page instead, for `man -l -`");
  command.value("--completion", flags->shell, "bash|zsh|fish",
                "Completions for this shell, to be sourced", one_of({"bash", "zsh", "fish"}));
  command.value("--write", flags->directory, "DIR",
                "Write all pages and completions below this directory, as packages do");
  command.footer(
      "Examples:\n"
      "  sealane help bench copy\n"
      "  sealane help run --man | man -l -\n"
      "  source <(sealane help --completion bash)");
  command.job([flags, &all] { return help(all, *flags); });
}

}  // namespace sealane::cli
