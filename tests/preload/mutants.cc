// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The build of the preload in which a rule can be taken out, by SEALANE_MUTANT.

#include "mutants.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace sealane::preload {
namespace {

uint32_t chosen() {
  static constexpr struct {
    std::string_view name;
    Mutant rule;
  } kNames[] = {
      {"zero_iv", Mutant::zero_iv},
      {"iv_length", Mutant::iv_length},
      {"generated_iv", Mutant::generated_iv},
      {"direction", Mutant::direction},
      {"keyed_again", Mutant::keyed_again},
      {"after_final", Mutant::after_final},
      {"late_additional", Mutant::late_additional},
      {"copy", Mutant::copy},
      {"unasked", Mutant::unasked},
      {"begun_anew", Mutant::begun_anew},
      {"unkeyed", Mutant::unkeyed},
      {"unburnt", Mutant::unburnt},
      {"tls_in_init", Mutant::tls_in_init},
      {"twice", Mutant::twice},
      {"type", Mutant::type},
      {"burning_fails", Mutant::burning_fails},
      {"takes_used_ivs", Mutant::takes_used_ivs},
      {"nested", Mutant::nested},
  };
  const char* const given = std::getenv("SEALANE_MUTANT");
  std::string_view wanted = given != nullptr ? given : "";
  uint32_t all = 0;
  while (!wanted.empty()) {
    const std::string_view name = wanted.substr(0, wanted.find(','));
    for (const auto& one : kNames) {
      if (one.name == name) all |= 1u << static_cast<unsigned>(one.rule);
    }
    wanted.remove_prefix(std::min(wanted.size(), name.size() + 1));
  }
  return all;
}

}  // namespace

bool broken(Mutant rule) {
  static const uint32_t taken_out = chosen();
  return (taken_out >> static_cast<unsigned>(rule) & 1) != 0;
}

}  // namespace sealane::preload
