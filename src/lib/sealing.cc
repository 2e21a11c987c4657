// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sealane/sealing.h"

#include "seal/engine.h"

namespace sealane {

SealingInfo sealing_info() {
  const auto engine = chosen_engine();
  if (!engine)
    return {.usable = false, .engine = {}, .version = {}, .problem = engine.error().message};
  return {.usable = true,
          .engine = std::string((*engine)->name()),
          .version = (*engine)->version(),
          .problem = {}};
}

}  // namespace sealane
