// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Declarations, as modules and bodies have them: `.space .align N .type name[n] = {...}`.
//
// Stateless but for the lexer it reads from.
#pragma once

#include <vector>

#include "ptx/text/lexer.h"
#include "ptx/text/module.h"

namespace sealane::ptx {

constexpr uint64_t kVariableBytesMax = uint64_t{1} << 36;

// What follows the space: one variable or several with commas (and %name<N> for registers, which
// `counts` gets; 0: no such suffix). Does not take the semicolon.
struct Declared {
  Variable variable;
  uint32_t count = 0;
};
Result<std::vector<Declared>> read_declaration(Lexer& lexer, Space space);

// A space's name without the dot; false: it is none.
bool space_named(std::string_view name, Space& out);

}  // namespace sealane::ptx
