// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The safety rules of the core, one switch each, all on. They exist so that the simulator can prove
// that it would notice: `sealane sim --break RULE` turns one off and must find the violation.
// Nothing else ever turns one off.
#pragma once

namespace sealane {

struct SafetyRules {
  bool iv_once = true;  // an exposed record is never voided, its position never sealed again
  bool stale = true;    // a write to a guarded range voids what was sealed from it
  bool order = true;    // a copy is issued when all before it in its stream is done
  bool verify_before_use = true;  // a synchronising call waits until what came back is verified
  bool budget = true;             // slots stay within the budget
  bool rotation = true;           // a new key voids what was sealed under the old one
  bool gate = true;               // a stream waits for the copies carried on its behalf
};

}  // namespace sealane
