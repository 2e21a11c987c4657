// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What this machine seals with. For programs that want to say so, or refuse to start without it.
#pragma once

#include <string>

#include "sealane/export.h"

namespace sealane {

struct SealingInfo {
  bool usable = false;
  std::string engine;   // "ipsec-mb" or "openssl"; empty if not usable
  std::string version;  // library and code path
  std::string problem;  // one line; empty if usable
};

// Chooses an AES-256-GCM engine for this CPU (SEALANE_AEAD overrides), runs its self-test and
// cross-checks it against OpenSSL. Costs about a millisecond the first time; any thread.
SEALANE_API SealingInfo sealing_info();

}  // namespace sealane
