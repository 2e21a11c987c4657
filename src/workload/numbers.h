// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// In a file the numbers of contexts, streams, events, threads and flags are names, any of 32 bits.
// Whoever replays it has them as places in lists. Pure.
#pragma once

#include "workload/operation.h"

namespace sealane::workload {

// Numbers that would make long lists are replaced by small ones; all others stay.
void make_numbers_small(Program& program);

}  // namespace sealane::workload
