// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The safety rules of the core, one name each. In a build with mutants (tests; never what ships)
// each can be turned off, so that the simulator proves that it would notice: `sealane sim --break
// RULE` must find the violation. In any other build they are constants, and the compiler removes
// what a mutant would do.
#pragma once

namespace sealane {

#ifdef SEALANE_MUTANTS
constexpr bool kMutants = true;
#define SEALANE_RULE(name) bool name = true
#else
constexpr bool kMutants = false;
#define SEALANE_RULE(name) static constexpr bool name = true
#endif

// What each of the first group says is written at the head of core/copy/copies.h.
struct SafetyRules {
  // core/copy
  SEALANE_RULE(order);
  SEALANE_RULE(run);
  SEALANE_RULE(legacy);
  SEALANE_RULE(hazard);
  SEALANE_RULE(gate);
  SEALANE_RULE(gate_order);
  SEALANE_RULE(snapshot);
  SEALANE_RULE(read_at_turn);
  SEALANE_RULE(verify_before_use);
  SEALANE_RULE(run_behind_forgery);
  SEALANE_RULE(fail_first);
  SEALANE_RULE(deliver_after_failure);
  SEALANE_RULE(wipe);
  SEALANE_RULE(message_match);
  SEALANE_RULE(capture);
  SEALANE_RULE(freed_range);
  SEALANE_RULE(stale_at_turn);
  SEALANE_RULE(unseen_writer);
  // core/pipeline
  SEALANE_RULE(iv_once);   // of two records for one message one is wiped before the other is made
  SEALANE_RULE(stale);     // a write to a guarded range voids what was sealed from it
  SEALANE_RULE(budget);    // slots stay within the budget
  SEALANE_RULE(rotation);  // a slot answers under the key it was sealed with
};

#undef SEALANE_RULE

}  // namespace sealane
