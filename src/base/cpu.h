// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What this CPU has of the instructions our loops are written for. SEALANE_CPU hides some of them
// ("-avx512,-vaes"): tests run what other machines would run, and whoever mistrusts a path can
// leave it. Hidden is as good as absent to everything of ours, ipsec-mb included; libcrypto has a
// variable of its own, OPENSSL_ia32cap. Read once, at the first question. Thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sealane {

enum class CpuFeature {
  avx,
  avx2,
  aes,     // AES-NI and PCLMULQDQ
  vaes,    // VAES and VPCLMULQDQ: the same on wider vectors
  avx512,  // F, BW, DQ and VL
};

// It is there and not hidden.
bool cpu_has(CpuFeature feature);

// Its stores gain by lines that were asked for before they are written: Intel's do (1.3 times as
// fast from DRAM), AMD's Zen 4 loses a fifth by it. Hidden by nothing.
bool cpu_gains_by_asking_to_write();

struct CpuFeatureState {
  CpuFeature feature;
  std::string_view name;  // as in SEALANE_CPU
  bool present;
  bool hidden;  // by the variable, whether present or not
};
std::span<const CpuFeatureState> cpu_features();  // in the order of the enumeration

// What of SEALANE_CPU could not be understood, "" if all: it hides nothing then.
const std::string& cpu_variable_problem();

}  // namespace sealane
