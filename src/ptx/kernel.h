// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels as they are run: instructions with a handler each, operands resolved to places of the
// register file or of the constant pool.
//
// Registers: a register's 32 lanes lie beside each other, so that an operation is a loop the
// compiler vectorises. A predicate is one word with a bit per lane. An operand is a byte offset:
// from the frame's registers if not negative, else ~offset from the kernel's constants.
//
// Immutable once decoded; shared by all warps.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ptx/text/module.h"
#include "ptx/types.h"

namespace sealane::ptx {

constexpr unsigned kLanes = 32;
constexpr uint32_t kAllLanes = 0xffffffff;

struct Warp;
struct Instr;

// What a handler says about where its lanes go on.
enum class Flow : uint8_t {
  next,   // at the next instruction
  moved,  // the warp's groups changed; schedule again
  wait,   // here, when other lanes or warps have come: schedule again
  fault,  // nowhere: the grid has failed
};

using Handler = Flow (*)(Warp&, const Instr&, uint32_t mask);

struct Instr {
  Handler run = nullptr;
  int32_t d = 0, a = 0, b = 0, c = 0;
  int32_t guard = -1;  // a predicate's offset, -1: none
  uint32_t line = 0;
  int64_t imm = 0;      // an address's offset, a target, a table, a selector
  uint32_t list = 0;    // into Kernel::lists: further operands
  uint16_t count = 0;   // of them
  uint16_t cost = 0;    // arithmetic operations a lane does
  uint8_t d_bytes = 4;  // widths of the registers
  uint8_t a_bytes = 4;
  uint8_t bytes = 4;  // of a memory element
  uint8_t mode = 0;   // rounding, combination, scope: the handler's own
  Space space = Space::generic;
  bool guard_not = false;
  bool flag = false;   // the handler's own
  bool signs = false;  // a load extends the sign
  uint32_t name = 0;   // into Kernel::names, for messages
};

struct Function {
  std::string name;
  std::string error;  // not empty: why it could not be decoded; told when it is called
  std::vector<Instr> code;
  uint32_t register_bytes = 0;
  uint32_t stack_bytes = 0;  // per lane: parameters, returns, locals, parameters of calls
  struct Part {
    uint32_t offset = 0;
    uint32_t bytes = 0;
  };
  std::vector<Part> parameters;  // in its stack; of an entry: in the launch's buffer
  std::vector<Part> returns;
};

// A matrix that a warp holds (wmma.*).
struct WarpMatrix {
  Type type = Type::none;
  unsigned rows = 0;
  unsigned columns = 0;
  unsigned registers = 0;  // of a lane
  uint32_t places = 0;     // into Kernel::lists: where they are
  bool by_column = false;  // in memory
};

enum class Builtin : uint8_t { none, vprintf, assertfail, malloc, free };

struct Kernel {
  std::shared_ptr<const Module> module;
  std::string name;
  std::vector<std::unique_ptr<Function>> functions;  // [0] is the entry
  std::map<uint64_t, uint32_t> function_at;          // by address in the function window
  std::vector<uint8_t> constants;
  std::vector<int64_t> lists;
  std::vector<WarpMatrix> matrices;
  std::vector<std::string> names;  // of instructions
  std::vector<Function::Part> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t shared_bytes = 0;           // static
  uint32_t dynamic_shared_offset = 0;  // where the launch's begins
  uint32_t stack_bytes = 0;            // a lane needs; 0 with `recursive`: unknown
  bool recursive = false;              // or calls by address
  unsigned threads_max = 1024;
  unsigned threads_required[3] = {0, 0, 0};
  unsigned registers = 0;  // a guess of what a GPU would need
  bool spins = false;      // has loops that read memory others write
};

}  // namespace sealane::ptx
