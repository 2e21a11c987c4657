// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Every parameter a platform has, by name: the definition of the file format, and what a draw of
// spread.h goes through. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "platform/platform.h"

namespace sealane {

// What a parameter may be. The limits are those of any machine we can imagine, so that a slip of
// the unit (ms for us, GB/s for MB/s) is seen here and not in a strange estimate.
struct Number {
  double* to;
  double least;
  double most;
};
struct Count {
  uint64_t* to;
  uint64_t least;
  uint64_t most;
};
using Target = std::variant<Number, Count, bool*, std::string*>;

struct Field {
  std::string key;
  Target target;
};

// Targets point into `platform`.
std::vector<Field> fields_of(Platform& platform);

}  // namespace sealane
