// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of GcmState that a test can take out, to see that somebody notices. Only a build for tests
// (SEALANE_PRELOAD_MUTANTS) can: in any other, broken() is the constant false.
#pragma once

#include <cstdint>

namespace sealane::preload {

enum class Mutant : uint8_t {
  none,
  zero_iv,          // a key without an IV begins a message
  iv_length,        // every IV has 12 bytes
  generated_iv,     // IVs come from init alone
  direction,        // it is the key's
  after_final,      // a message goes on after its end
  late_additional,  // additional data may follow data
  copy,             // of a finished context is a fresh one
};

#ifdef SEALANE_PRELOAD_MUTANTS
bool broken(Mutant rule);  // SEALANE_MUTANT names it
#else
constexpr bool broken(Mutant) { return false; }
#endif

}  // namespace sealane::preload
