// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Man pages and shell completions, made from the commands' own definitions: what --help says is
// what they say. Pure.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace sealane::cli {

// A command and how it is reached: "sealane bench seal".
struct CommandPath {
  const CLI::App* app;
  std::string path;
};

// Those right below it, whether they were typed or not.
inline std::vector<const CLI::App*> commands_below(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}
std::vector<std::string> command_names(const CLI::App& app);

// The root first, then every command below it.
std::vector<CommandPath> all_commands(const CLI::App& root);

// A page for man(1), in roff; its file is called NAME.1, as in sealane-bench-seal.1.
std::string man_page(const CLI::App& root, const CommandPath& command);
std::string man_page_name(const CommandPath& command);

// For "bash", "zsh" or "fish"; empty for other shells.
std::string completion_script(const CLI::App& root, const std::string& shell);

}  // namespace sealane::cli
