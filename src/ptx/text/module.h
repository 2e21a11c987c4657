// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A module as its text says it: variables, functions with their parameters, bodies unread. A body
// is read when a kernel needs it (body.h).
//
// Immutable once parsed; may be shared between threads.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ptx/types.h"

namespace sealane::ptx {

// Bytes `shift` and up of a symbol's address go to `offset`; `bytes` of them.
struct Relocation {
  uint64_t offset = 0;
  std::string symbol;
  int64_t addend = 0;
  unsigned bytes = 8;
  unsigned shift = 0;
};

struct Variable {
  std::string name;
  Space space = Space::global;
  Type type = Type::none;
  uint64_t align = 1;
  uint64_t bytes = 0;  // 0 with `unsized`: an extern array, the launch says how large
  bool unsized = false;
  bool external = false;
  bool weak = false;
  bool local = false;  // to its text
  bool managed = false;
  bool opaque = false;  // a texture, surface or sampler reference
  uint32_t line = 0;
  std::vector<uint8_t> initial;  // empty: zeros
  std::vector<Relocation> relocations;
};

struct FunctionText {
  std::string name;
  bool entry = false;
  bool defined = false;
  bool weak = false;
  bool local = false;  // to its text
  std::vector<Variable> returns;
  std::vector<Variable> parameters;
  std::string_view body;  // what is between its braces
  uint32_t line = 0;      // of the body's first character
  unsigned threads_max = 0;
  unsigned threads_required[3] = {0, 0, 0};
  unsigned blocks_min = 0;
};

struct Module {
  std::string text;
  int version = 0;  // 80 for 8.0
  int target = 0;   // 90 for sm_90
  std::vector<Variable> variables;
  std::vector<FunctionText> functions;
  std::map<std::string, size_t, std::less<>> variable_named;
  std::map<std::string, size_t, std::less<>> function_named;
  std::map<std::string, std::string, std::less<>> aliases;
  std::vector<std::shared_ptr<const Module>> parts;  // if it was linked: they have the texts

  const FunctionText* function(std::string_view name) const;
  const Variable* variable(std::string_view name) const;
};

// An error's message begins with "line N: ".
Result<std::shared_ptr<const Module>> parse_module(std::string text);

Error text_error(uint32_t line, std::string message);

}  // namespace sealane::ptx
