// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What --help looks like: two columns that fit a terminal of 80, words kept whole.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace sealane::cli {

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace sealane::cli
