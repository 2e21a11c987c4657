// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/output_option.h"

namespace sealane::cli {

CLI::Option* add_output(CLI::App& command, const std::string& flag, std::string& path,
                        const std::string& help) {
  return command.add_option(flag, path, help)->type_name("FILE")->check(&check_output_name);
}

std::string check_output_name(const std::string& path) {
  return path.empty() ? "the name of the file is empty" : "";
}

std::string check_program_output_name(const std::string& path) {
  if (path != "-") return check_output_name(path);
  return "stdout is the program's own; name a file (./- if it is to be called so), or /dev/stderr";
}

}  // namespace sealane::cli
