// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane env nccl`: the lines to export so that NCCL seals, and stops where it cannot.

#include <fmt/core.h>

#include "cli/command.h"
#include "cli/nccl_checkup.h"
#include "report/output.h"

namespace sealane::cli {

void add_env(const Command& root) {
  const Command nccl =
      root.group("env", "Lines to export").command("nccl", "For NCCL over sealed connections");
  nccl.footer(
      "Use: eval \"$(sealane env nccl)\", on every host, with SEALANE_KEY_FILE set.\n"
      "'sealane doctor --nccl' says whether what NCCL sends is sealed.");
  nccl.job([] {
    std::string text;
    for (const NcclSetting& one : nccl_settings()) {
      text += fmt::format("export {}={}\n", one.name, one.value);
    }
    return report::write_file("-", text);
  });
}

}  // namespace sealane::cli
