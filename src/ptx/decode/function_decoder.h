// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The decoder's inside: one function's statements become instructions.
//
// One thread; lives as long as one function is decoded.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ptx/decode/decode.h"
#include "ptx/exec/handlers.h"
#include "ptx/ops/lanes.h"
#include "ptx/text/body.h"

namespace sealane::ptx {

// What the functions of a kernel share while it is decoded.
struct KernelDraft {
  std::shared_ptr<const Module> module;
  const Addresses& addresses;
  Kernel& kernel;
  struct Part {
    const FunctionText* text = nullptr;
    Body body;
    std::string error;
    std::set<size_t> calls;  // of parts
    bool calls_address = false;
  };
  std::vector<std::unique_ptr<Part>> parts;  // [0] is the entry
  std::map<std::string, size_t, std::less<>> part_named;
  std::map<std::string, uint32_t, std::less<>> shared_named;           // of the module
  std::map<std::pair<size_t, uint32_t>, uint32_t> shared_of_function;  // (part, variable)
  std::map<std::pair<uint64_t, unsigned>, int32_t> constant_at;
  std::map<std::string, uint32_t, std::less<>> name_at;

  int32_t constant(uint64_t bits, unsigned bytes);
};

class FunctionDecoder {
 public:
  FunctionDecoder(KernelDraft& draft, size_t part, Function& out);
  Status decode();

 private:
  // Modifiers of the statement at hand; each must be taken by somebody.
  bool take(std::string_view modifier);
  Type take_type();
  bool take_space(Space& space);
  Round take_round();
  void take_any(std::initializer_list<std::string_view> modifiers);
  Status all_taken();

  Error refuse(std::string_view why) const;
  Instr fresh() const;
  void emit(Instr in);

  // Operands. Each checks widths, so that a handler never leaves its registers.
  Result<int32_t> place(uint32_t reg, unsigned bytes, bool exact = true);
  Result<int32_t> source(const Operand& operand, Type type);
  Result<int32_t> destination(const Operand& operand, unsigned bytes);
  Result<int32_t> predicate(const Operand& operand);
  Result<uint64_t> symbol(const Operand& operand, Space& space);
  int32_t scratch(unsigned bytes);
  unsigned width(const Operand& operand) const;  // of a register, 0: it is none
  Status set(int32_t& to, Result<int32_t> from);
  Status address(const Operand& operand, Instr& in);
  Status list(Instr& in, const Operand& operand, Type type, bool written, unsigned bytes);
  Status need(size_t at_least, size_t at_most);
  Status special(const Operand& operand, int32_t d, unsigned bytes);

  // Instructions, by family.
  Status statement();
  Status arithmetic(Op op, unsigned operands);
  Status emit_op(const OpKey& key, Instr in);
  Status add_sub();
  Status multiply();
  Status compare();
  Status select();
  Status convert();
  Status move();
  Status move_address(const Operand& from, int32_t d, unsigned bytes);
  Status logic(Op op, PredicateOp predicate_op);
  Status shift(Op op);
  Status bits();
  Status permute();
  Status dot();
  Status bytes_apart();
  Status test();
  Status math(Op op);
  Status min_max(bool maximum);
  Status extreme_of_three(Op op);
  Status branch();
  Status branch_table();
  Status call();
  Status load();
  Status store();
  Status atomic(bool reduce);
  Status atomic_vector(Instr in, Type type);
  Status convert_address();
  Status is_space();
  Status fence();
  Status copy_async();
  Status shuffle();
  Status vote();
  Status match();
  Status reduce();
  Status barrier();
  Status matrix();
  Status matrix_memory(bool stores);
  Status warp_matrix();
  Status warp_multiply();
  bool take_shape(unsigned& m, unsigned& n, unsigned& k);
  Status matrix_registers(const Operand& group, WarpMatrix& matrix, bool written);
  Status barrier_object();
  Status barrier_object_at(Instr& in, size_t at, size_t value, Type type);
  Status copies_arrive();
  Status plain(Handler handler);

  uint32_t stack_place(uint32_t variable);

  KernelDraft& draft_;
  const size_t part_;
  const FunctionText& text_;
  Body& body_;
  Function& out_;
  const Statement* at_ = nullptr;
  std::vector<bool> taken_;
  std::vector<int32_t> register_at_;
  std::vector<int64_t> stack_at_;
  std::vector<uint32_t> first_instr_;  // by statement
};

}  // namespace sealane::ptx
