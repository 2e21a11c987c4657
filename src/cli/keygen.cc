// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane keygen FILE`: a key file for a training group.

#include <unistd.h>

#include <memory>
#include <string>

#include "cli/command.h"
#include "live/comm/key_file.h"
#include "report/output.h"

namespace sealane::cli {

void add_keygen(CLI::App& root, Invocation& invocation) {
  auto* command = root.add_subcommand("keygen", "Make a key file for a training group");
  auto path = std::make_shared<std::string>();
  command->add_option("file", *path, "Where to; never overwritten")->required()->type_name("FILE");
  command->footer(
      "Copy the file to every host (mode 0600, by a channel you trust) and set\n"
      "SEALANE_KEY_FILE. Whoever has the key can pose as any rank; certificates bind\n"
      "a rank (docs/collectives.md).");
  command->callback([path, &invocation] {
    invocation.job = [path]() -> Status {
      if (path->empty() || *path == "-") return usage_error("keygen needs a file's name");
      if (access(path->c_str(), F_OK) == 0) {
        return usage_error(*path + " exists, and a key is never overwritten: name another file");
      }
      if (Status status = write_key_file(*path); !status) return status;
      return report::write_file("-", *path + "\n");
    };
  });
}

}  // namespace sealane::cli
