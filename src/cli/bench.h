// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What there is to measure: one file per benchmark, plugged in as in command.h.
#pragma once

#include "cli/command.h"

namespace sealane::cli {

void add_bench_seal(CLI::App& bench, Invocation& invocation);

}  // namespace sealane::cli
