// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong besides the program itself: by a script, at chosen operations, or by chance,
// before any.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "sim/program_calls.h"

namespace sealane::sim {

class FaultInjector {
 public:
  FaultInjector(World& world, Runtime& runtime, ProgramCalls& calls, Threads& threads)
      : world_(world), runtime_(runtime), calls_(calls), threads_(threads) {
    for (const ScriptedFault& fault : world.setup.script) script_.emplace(fault.before, fault);
  }

  // Once, also if the operation has to be tried again.
  void follow_script(uint32_t operation);
  // The caller is about to make a call. `copied`: by a call that has not returned.
  void by_chance(Caller& caller, const std::function<bool(const Range&)>& copied);

 private:
  void crash(uint32_t context);

  World& world_;
  Runtime& runtime_;
  ProgramCalls& calls_;
  Threads& threads_;
  std::multimap<uint64_t, ScriptedFault> script_;  // what is left of it, by operation
};

}  // namespace sealane::sim
