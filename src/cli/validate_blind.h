// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane validate --blind DIR: what somebody measured, foretold before it is read.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace sealane::cli {

struct BlindFlags {
  std::string directory;
  std::string json;  // empty: none
  uint32_t draws = 0;
};

// Writes predictions.csv into the directory, then opens the measurements, then writes verdict.txt.
// Without measurements it stops after the first. Predictions that are there and differ are never
// replaced: whoever has seen the values cannot foretell them again.
Status validate_blind(const BlindFlags& flags);

}  // namespace sealane::cli
