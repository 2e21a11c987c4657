// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "cli/command.h"

namespace sealane::cli {

std::vector<std::string> unknown_environment() {
  static const std::vector<std::string> known = {
      "SEALANE_AEAD",       // which engine seals
      "SEALANE_CPU",        // features of the CPU that engines are to do without
      "SEALANE_DEBUG",      // log level
      "SEALANE_PLATFORMS",  // directory of platform files
      "SEALANE_NO_APT",     // the Makefile's: never install packages
      // The runtime's; docs/runtime.md says what each does.
      "SEALANE_DISABLE", "SEALANE_OBSERVE", "SEALANE_ENABLE", "SEALANE_VERIFY", "SEALANE_WORKERS",
      "SEALANE_STAGING_MB", "SEALANE_POLICY", "SEALANE_SLOT_MB", "SEALANE_PAGE_GUARDS",
      "SEALANE_EARLY", "SEALANE_STATS", "SEALANE_METRICS", "SEALANE_METRICS_SECONDS",
      "SEALANE_TRACE", "SEALANE_RECORD", "SEALANE_COSTS", "SEALANE_QUIET", "SEALANE_ATTACH",
      // The emulated GPU's; docs/emulator.md says what each does.
      "SEALANE_EMU_CC", "SEALANE_EMU_COMPUTE_CAPABILITY", "SEALANE_EMU_MACHINE_CODE",
      "SEALANE_EMU_CHECK", "SEALANE_EMU_WORKERS", "SEALANE_EMU_GPUS", "SEALANE_EMU_MEMORY",
      "SEALANE_EMU_NAME", "SEALANE_EMU_REACH", "SEALANE_EMU_STAGED", "SEALANE_EMU_AAD",
      "SEALANE_EMU_UPDATES", "SEALANE_EMU_FRESH_CONTEXTS", "SEALANE_EMU_SEAL_THREAD",
      "SEALANE_EMU_WIPES", "SEALANE_EMU_CHATTER", "SEALANE_EMU_QUEUES", "SEALANE_EMU_MEMOPS",
      "SEALANE_EMU_MAPPED", "SEALANE_EMU_PAGEABLE", "SEALANE_EMU_MESSAGE", "SEALANE_EMU_SLOTS",
      "SEALANE_EMU_ROTATE", "SEALANE_EMU_CONTEXTS", "SEALANE_EMU_ADVERSARY", "SEALANE_EMU_PACING",
      "SEALANE_EMU_DILATION", "SEALANE_EMU_MODEL", "SEALANE_EMU_KERNELS", "SEALANE_EMU_STATS",
      "SEALANE_EMU_ATEN",
      // Of groups, of NCCL and PyTorch; docs/collectives.md, docs/nccl.md and docs/pytorch.md.
      "SEALANE_ALGORITHM", "SEALANE_ATTEST_BINDING", "SEALANE_ATTEST_CMD", "SEALANE_ATTEST_RANK",
      "SEALANE_CA_FILE", "SEALANE_CERT_FILE", "SEALANE_CERT_KEY_FILE", "SEALANE_GROUP",
      "SEALANE_HOSTID", "SEALANE_HUB", "SEALANE_KEY_CMD", "SEALANE_KEY_FILE", "SEALANE_KEY_GROUP",
      "SEALANE_NCCL_CUDA", "SEALANE_NCCL_STREAMS", "SEALANE_NCCL_WORKERS", "SEALANE_SOCKET_IFNAME",
      "SEALANE_RANK", "SEALANE_RENDEZVOUS", "SEALANE_SIZE", "SEALANE_TCP_STREAMS",
      "SEALANE_TRANSPORT"};
  std::vector<std::string> warnings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view name = *entry;
    name = name.substr(0, name.find('='));
    if (!name.starts_with("SEALANE_")) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    warnings.push_back(fmt::format("sealane: warning: nothing reads the variable {}{}", name,
                                   did_you_mean(name, known)));
  }
  return warnings;
}

}  // namespace sealane::cli
