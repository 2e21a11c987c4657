// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of GcmState and EvpContext that a test can take out, to see that somebody notices. Only a
// build for tests (SEALANE_PRELOAD_MUTANTS) can: in any other, broken() is the constant false.
#pragma once

#include <cstdint>

namespace sealane::preload {

enum class Mutant : uint8_t {
  none,
  zero_iv,          // a key without an IV begins a message
  iv_length,        // every IV has 12 bytes
  generated_iv,     // IVs come from init alone
  direction,        // it is the key's
  keyed_again,      // another key goes on with the message that was ready
  after_final,      // a message goes on after its end
  late_additional,  // additional data may follow data
  copy,             // of a finished context is a fresh one
  unasked,          // where libcrypto is at the first byte is taken for granted
  begun_anew,       // and later, where it has taken bytes since
  unkeyed,          // which key it has there is taken for granted
  unburnt,          // and the IV is left to it
  tls_in_init,      // parameters of init are a tag and an IV's length
  twice,            // a parameter that is named twice counts twice
  type,             // a tag is a tag, of whatever type
  burning_fails,    // as if libcrypto did not set the length of an IV
  takes_used_ivs,   // as if libcrypto did not refuse them
  nested,           // calls within a call are libcrypto's, for whatever context
};

#ifdef SEALANE_PRELOAD_MUTANTS
bool broken(Mutant rule);  // SEALANE_MUTANT names it, or some, with commas
#else
constexpr bool broken(Mutant) { return false; }
#endif

}  // namespace sealane::preload
