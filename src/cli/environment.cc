// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/environment.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "cli/suggest.h"

namespace sealane::cli {

std::vector<std::string> unknown_environment() {
  static const std::vector<std::string> known = {
      "SEALANE_AEAD",            // which engine seals
      "SEALANE_ALGORITHM",       // of collectives
      "SEALANE_ATTEST_BINDING",  // given to the attestation command
      "SEALANE_ATTEST_CMD",      // who contributes and checks evidence
      "SEALANE_ATTEST_RANK",     // given to the attestation command
      "SEALANE_CA_FILE",         // whose certificates count
      "SEALANE_CERT_FILE",       // this rank's certificate
      "SEALANE_CERT_KEY_FILE",   // and its private key
      "SEALANE_DEBUG",           // log level
      "SEALANE_KEY_FILE",        // the pre-shared key of a group
      "SEALANE_NO_APT",          // the Makefile's: never install packages
      "SEALANE_RANK",            // of this process in its group
      "SEALANE_RENDEZVOUS",      // where ranks meet
      "SEALANE_SIZE",            // of the group
      "SEALANE_TRANSPORT",       // shm, tcp or auto
  };
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
