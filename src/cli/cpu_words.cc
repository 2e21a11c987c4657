// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string_view>

#include "base/cpu.h"
#include "cli/checkup.h"

namespace sealane::cli {

std::vector<std::string> cpu_gaps(const Cpu& cpu) {
  const auto has = [&](std::string_view name) {
    return std::find(cpu.features.begin(), cpu.features.end(), name) != cpu.features.end();
  };
  const bool x86 = has("pclmulqdq") || !has("pmull");
  if (!x86) return {};  // there is nothing wider to miss
  if (!cpu_has(CpuFeature::aes)) {
    return {"This CPU shows no AES instructions: sealing is slow, and its timing may leak.",
            "A virtual machine may hide them: let it pass the host's CPU through."};
  }
  const bool vaes = cpu_has(CpuFeature::vaes);
  if (vaes && cpu_has(CpuFeature::avx512)) return {};
  std::vector<std::string> lines;
  if (!vaes) {
    lines = {"This CPU shows no VAES: AES takes 16 bytes at a time, newer ones take 32 or 64.",
             "A copy has no such limit, so sealing costs more of a copy here than there."};
  } else {
    lines = {
        "This CPU shows no AVX512: AES takes 32 bytes at a time, others take 64, so sealing "
        "costs more of a copy here than there."};
  }
  const auto features = cpu_features();
  const bool hidden = std::any_of(features.begin(), features.end(),
                                  [](const auto& one) { return one.present && one.hidden; });
  if (hidden) lines.push_back("It has more: SEALANE_CPU hides it.");
  lines.push_back("Ratios that were measured with AVX512 do not hold here; those above do.");
  return lines;
}

}  // namespace sealane::cli
