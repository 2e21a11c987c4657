// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "ptx/decode/decode.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "ptx/decode/function_decoder.h"
#include "ptx/exec/builtins.h"

namespace sealane::ptx {
namespace {

constexpr uint64_t kSharedMax = 1 << 20;
constexpr uint64_t kStackMax = 1 << 24;

uint64_t aligned(uint64_t at, uint64_t align) { return (at + align - 1) & ~(align - 1); }

void each_name(const Operand& operand, const std::function<void(std::string_view)>& fn) {
  if (operand.kind == Operand::Kind::name) fn(operand.name);
  for (const Operand& part : operand.parts) each_name(part, fn);
}

// Reads a function and, through it, all it names.
class Collector {
 public:
  explicit Collector(KernelDraft& draft) : draft_(draft) {}

  Status collect(const FunctionText& entry) {
    add(entry);
    for (size_t i = 0; i < draft_.parts.size(); ++i) read(i);
    if (!draft_.parts[0]->error.empty()) return usage_error(draft_.parts[0]->error);
    const bool by_address = std::any_of(draft_.parts.begin(), draft_.parts.end(),
                                        [](const auto& part) { return part->calls_address; });
    if (!by_address) return {};
    // Whoever has an address may be called by it.
    const size_t known = draft_.parts.size();
    for (const FunctionText& function : draft_.module->functions) {
      if (!function.entry && function.defined) add(function);
    }
    for (size_t i = known; i < draft_.parts.size(); ++i) read(i);
    return {};
  }

 private:
  size_t add(const FunctionText& function) {
    const auto known = draft_.part_named.find(function.name);
    if (known != draft_.part_named.end()) return known->second;
    auto part = std::make_unique<KernelDraft::Part>();
    part->text = &function;
    draft_.part_named[function.name] = draft_.parts.size();
    draft_.parts.push_back(std::move(part));
    return draft_.parts.size() - 1;
  }

  void read(size_t index) {
    KernelDraft::Part& part = *draft_.parts[index];
    auto body = read_body(*part.text);
    if (!body) {
      part.error = body.error().message;
      return;
    }
    part.body = std::move(*body);
    for (const Statement& statement : part.body.statements) {
      if (statement.opcode == "call") {
        for (const Operand& operand : statement.operands) {
          if (operand.kind == Operand::Kind::reg) part.calls_address = true;
        }
      }
      for (const Operand& operand : statement.operands) {
        each_name(operand, [&](std::string_view name) { note(index, name); });
      }
    }
  }

  void note(size_t index, std::string_view name) {
    const Variable* variable = draft_.module->variable(name);
    if (variable != nullptr && variable->space == Space::shared) {
      draft_.shared_named.emplace(name, 0);
    }
    const FunctionText* function = draft_.module->function(name);
    if (function != nullptr && function->defined && !function->entry) {
      const size_t called = add(*function);
      draft_.parts[index]->calls.insert(called);
    }
  }

  KernelDraft& draft_;
};

// Static shared memory first, then what the launch brings.
Status lay_out_shared(KernelDraft& draft) {
  uint64_t end = 0;
  uint64_t dynamic_align = 16;
  const auto place = [&](const Variable& variable) {
    end = aligned(end, variable.align);
    const uint64_t at = end;
    end += variable.bytes;
    return static_cast<uint32_t>(std::min(at, kSharedMax));
  };
  for (auto& [name, offset] : draft.shared_named) {
    const Variable& variable = *draft.module->variable(name);
    if (variable.unsized)
      dynamic_align = std::max(dynamic_align, variable.align);
    else
      offset = place(variable);
    if (end > kSharedMax) return usage_error("more shared memory than a block can have");
  }
  for (size_t part = 0; part < draft.parts.size(); ++part) {
    const std::vector<Variable>& variables = draft.parts[part]->body.variables;
    for (uint32_t i = 0; i < variables.size(); ++i) {
      if (variables[i].space != Space::shared) continue;
      draft.shared_of_function[{part, i}] = place(variables[i]);
      if (end > kSharedMax) return usage_error("more shared memory than a block can have");
    }
  }
  draft.kernel.shared_bytes = static_cast<uint32_t>(end);
  draft.kernel.dynamic_shared_offset = static_cast<uint32_t>(aligned(end, dynamic_align));
  for (auto& [name, offset] : draft.shared_named) {
    if (draft.module->variable(name)->unsized) offset = draft.kernel.dynamic_shared_offset;
  }
  return {};
}

Status lay_out_parameters(const FunctionText& entry, Kernel& kernel) {
  uint64_t end = 0;
  for (const Variable& parameter : entry.parameters) {
    end = aligned(end, parameter.align);
    kernel.parameters.push_back(
        {static_cast<uint32_t>(end), static_cast<uint32_t>(parameter.bytes)});
    end += parameter.bytes;
    if (end > 32764) return usage_error("more than 32764 bytes of parameters");
  }
  kernel.parameter_bytes = static_cast<uint32_t>(end);
  return {};
}

// What a lane's stack holds at most; false: there is a cycle.
bool deepest_stack(const KernelDraft& draft, size_t part, std::vector<int>& state,
                   std::vector<uint64_t>& deepest) {
  if (state[part] == 2) return true;
  if (state[part] == 1) return false;
  state[part] = 1;
  uint64_t below = 0;
  for (const size_t called : draft.parts[part]->calls) {
    if (!deepest_stack(draft, called, state, deepest)) return false;
    below = std::max(below, deepest[called]);
  }
  deepest[part] = draft.kernel.functions[part]->stack_bytes + below;
  state[part] = 2;
  return true;
}

void measure_stack(KernelDraft& draft) {
  Kernel& kernel = draft.kernel;
  std::vector<int> state(draft.parts.size());
  std::vector<uint64_t> deepest(draft.parts.size());
  const bool by_address = std::any_of(draft.parts.begin(), draft.parts.end(),
                                      [](const auto& part) { return part->calls_address; });
  kernel.recursive = by_address || !deepest_stack(draft, 0, state, deepest);
  kernel.stack_bytes =
      kernel.recursive ? 0 : static_cast<uint32_t>(std::min(deepest[0], kStackMax));
}

}  // namespace

int32_t KernelDraft::constant(uint64_t bits, unsigned bytes) {
  if (bytes < 8) bits &= (uint64_t{1} << (bytes * 8)) - 1;
  const auto [found, added] = constant_at.emplace(std::make_pair(bits, bytes), 0);
  if (!added) return found->second;
  std::vector<uint8_t>& pool = kernel.constants;
  const size_t at = pool.size();
  pool.resize(at + size_t{bytes} * kLanes);
  for (unsigned i = 0; i < kLanes; ++i)
    std::memcpy(pool.data() + at + size_t{i} * bytes, &bits, bytes);
  found->second = ~static_cast<int32_t>(at);
  return found->second;
}

uint64_t function_address(const Module& module, std::string_view name) {
  const FunctionText* function = module.function(name);
  if (function == nullptr || !function->defined) return 0;
  return kFunctionWindow + 16 * (static_cast<uint64_t>(function - module.functions.data()) + 1);
}

Result<std::shared_ptr<const Kernel>> decode_kernel(std::shared_ptr<const Module> module,
                                                    std::string_view name,
                                                    const Addresses& addresses) {
  const FunctionText* entry = module->function(name);
  if (entry == nullptr || !entry->entry || !entry->defined) {
    return usage_error(concat("no kernel ", printable(name, 200)));
  }
  auto kernel = std::make_shared<Kernel>();
  kernel->module = module;
  kernel->name = name;
  kernel->threads_max = entry->threads_max > 0 ? std::min(entry->threads_max, 1024u) : 1024;
  std::copy_n(entry->threads_required, 3, kernel->threads_required);
  KernelDraft draft{module, addresses, *kernel, {}, {}, {}, {}, {}, {}};
  draft.constant(0, 8);
  if (Status done = Collector(draft).collect(*entry); !done) return done.error();
  if (Status done = lay_out_shared(draft); !done) return done.error();
  if (Status done = lay_out_parameters(*entry, *kernel); !done) return done.error();
  for (size_t i = 0; i < draft.parts.size(); ++i) {
    kernel->functions.push_back(std::make_unique<Function>());
    kernel->functions[i]->name = draft.parts[i]->text->name;
    kernel->function_at[function_address(*module, draft.parts[i]->text->name)] =
        static_cast<uint32_t>(i);
  }
  for (size_t i = 0; i < draft.parts.size(); ++i) {
    Function& function = *kernel->functions[i];
    function.error = draft.parts[i]->error;
    if (!function.error.empty()) continue;
    const Status decoded = FunctionDecoder(draft, i, function).decode();
    if (!decoded) function.error = decoded.error().message;
    if (i == 0 && !decoded) return decoded.error();
    // A function the kernel names is as much its own; one that only has an address may never run.
    const bool named = std::any_of(draft.parts.begin(), draft.parts.end(),
                                   [&](const auto& part) { return part->calls.contains(i); });
    if (!decoded && named) return decoded.error();
  }
  measure_stack(draft);
  kernel->registers = std::min(255u, kernel->functions[0]->register_bytes / 512 + 8);
  return std::shared_ptr<const Kernel>(std::move(kernel));
}

}  // namespace sealane::ptx
