// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A function's body as statements: registers and variables resolved by scope, labels to statement
// numbers. Views point into the module's text.
//
// Immutable once read.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "ptx/text/module.h"

namespace sealane::ptx {

struct Operand {
  enum class Kind : uint8_t {
    reg,       // index
    special,   // name and component: %tid.x
    integer,   // bits
    real,      // bits of a double
    single,    // bits of a float
    variable,  // index into Body::variables, a parameter or a variable of the function
    name,      // of the module: a variable or a function; or a label
    address,   // parts[0] + offset
    vector,    // {parts}
    pair,      // parts[0]|parts[1]
    group,     // (parts), of a call
    sink,      // _
  };
  Kind kind = Kind::sink;
  bool negated = false;  // !p, or a - that belongs to a register
  char component = 0;
  uint32_t index = 0;
  uint32_t scope = 0;
  std::string_view name;
  uint64_t bits = 0;
  int64_t offset = 0;
  std::vector<Operand> parts;
};

struct Statement {
  std::string_view opcode;
  std::vector<std::string_view> modifiers;
  std::vector<Operand> operands;
  int32_t guard = -1;  // a predicate register
  bool guard_not = false;
  uint32_t line = 0;

  bool has(std::string_view modifier) const;
};

struct Body {
  std::vector<Type> registers;
  std::vector<Variable>
      variables;  // parameters, returns, then .local, .shared and .param of the body
  std::vector<Statement> statements;
  std::vector<std::pair<std::string_view, std::vector<Operand>>> tables;  // .branchtargets

  // The statement a label stands before, -1: no such label in sight.
  int64_t label(std::string_view name, uint32_t scope) const;
  const std::vector<Operand>* table(std::string_view name) const;

  std::vector<uint32_t> scope_parents;
  std::map<std::pair<uint32_t, std::string_view>, uint32_t> labels;
};

Result<Body> read_body(const FunctionText& function);

}  // namespace sealane::ptx
