// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command.h"
namespace sealane::cli {
void add_doctor(CLI::App& root, Invocation& invocation) {
  auto* command = root.add_subcommand("doctor", "What this machine has, and what to expect");
  command->callback([&] { invocation.job = [] { return Status(); }; });
}
}  // namespace sealane::cli
