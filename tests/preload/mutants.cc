// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The build of the preload in which a rule can be taken out, by SEALANE_MUTANT.

#include "mutants.h"

#include <cstdlib>
#include <string_view>

namespace sealane::preload {
namespace {

Mutant chosen() {
  static constexpr struct {
    std::string_view name;
    Mutant rule;
  } kNames[] = {
      {"zero_iv", Mutant::zero_iv},
      {"iv_length", Mutant::iv_length},
      {"generated_iv", Mutant::generated_iv},
      {"direction", Mutant::direction},
      {"after_final", Mutant::after_final},
      {"late_additional", Mutant::late_additional},
      {"copy", Mutant::copy},
  };
  const char* const wanted = std::getenv("SEALANE_MUTANT");
  for (const auto& one : kNames) {
    if (wanted != nullptr && one.name == wanted) return one.rule;
  }
  return Mutant::none;
}

}  // namespace

bool broken(Mutant rule) {
  static const Mutant taken_out = chosen();
  return rule == taken_out;
}

}  // namespace sealane::preload
