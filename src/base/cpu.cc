// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/cpu.h"

#include <array>
#include <cstdlib>

#include "base/text.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace sealane {
namespace {

using States = std::array<CpuFeatureState, 5>;

#ifdef __x86_64__

// Asked apart: not every compiler knows these two by name.
bool has_wide_aes() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBoth = bit_VAES | bit_VPCLMULQDQ;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & kBoth) == kBoth;
}

bool has_aes() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAll = bit_AES | bit_PCLMUL | bit_SSE4_1 | bit_SSSE3;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & kAll) == kAll;
}

bool present(CpuFeature feature) {
  __builtin_cpu_init();
  switch (feature) {
    case CpuFeature::avx:
      return __builtin_cpu_supports("avx") != 0;
    case CpuFeature::avx2:
      return __builtin_cpu_supports("avx2") != 0;
    case CpuFeature::aes:
      return has_aes();
    case CpuFeature::vaes:
      return has_wide_aes() && __builtin_cpu_supports("avx2") != 0;
    case CpuFeature::avx512:
      return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
             __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  }
  return false;
}

#else

bool present(CpuFeature) { return false; }

#endif

bool is_intel() {
#ifdef __x86_64__
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

struct Cpu {
  States states = {{{CpuFeature::avx, "avx", false, false},
                    {CpuFeature::avx2, "avx2", false, false},
                    {CpuFeature::aes, "aes", false, false},
                    {CpuFeature::vaes, "vaes", false, false},
                    {CpuFeature::avx512, "avx512", false, false}}};
  std::string problem;

  explicit Cpu(std::string_view variable) {
    for (CpuFeatureState& state : states) state.present = present(state.feature);
    while (!variable.empty() && problem.empty()) {
      const size_t end = std::min(variable.find(','), variable.size());
      hide(variable.substr(0, end));
      variable.remove_prefix(std::min(end + 1, variable.size()));
    }
    if (problem.empty()) return;
    for (CpuFeatureState& state : states) state.hidden = false;
  }

  // What builds on a hidden feature goes with it.
  void hide(std::string_view word) {
    const auto named = [&](CpuFeature feature) -> CpuFeatureState& {
      return states[static_cast<size_t>(feature)];
    };
    for (const CpuFeatureState& state : states) {
      if (word != concat("-", state.name)) continue;
      named(state.feature).hidden = true;
      if (named(CpuFeature::avx).hidden) named(CpuFeature::avx2).hidden = true;
      if (named(CpuFeature::aes).hidden) named(CpuFeature::vaes).hidden = true;
      if (named(CpuFeature::avx2).hidden) {
        named(CpuFeature::vaes).hidden = named(CpuFeature::avx512).hidden = true;
      }
      return;
    }
    problem = concat("SEALANE_CPU: '", word, "' is none of -avx, -avx2, -aes, -vaes, -avx512");
  }
};

const Cpu& cpu() {
  static const Cpu& once = []() -> const Cpu& {
    const char* variable = std::getenv("SEALANE_CPU");
    return *new Cpu(variable != nullptr ? variable : "");
  }();
  return once;
}

}  // namespace

bool cpu_gains_by_asking_to_write() {
  static const bool gains = is_intel();
  return gains;
}

bool cpu_has(CpuFeature feature) {
  const CpuFeatureState& state = cpu().states[static_cast<size_t>(feature)];
  return state.present && !state.hidden;
}

std::span<const CpuFeatureState> cpu_features() { return cpu().states; }

const std::string& cpu_variable_problem() { return cpu().problem; }

}  // namespace sealane
