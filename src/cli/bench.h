// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What there is to measure: one file per benchmark, plugged in as in command.h.
#pragma once

#include <string>

#include "cli/command.h"

namespace sealane::cli {

void add_bench_seal(CLI::App& bench, Invocation& invocation);
void add_bench_copy(CLI::App& bench, Invocation& invocation);
void add_bench_engines(CLI::App& bench, Invocation& invocation);
void add_bench_ptx(CLI::App& bench, Invocation& invocation);
void add_bench_nccl(CLI::App& bench, Invocation& invocation);
void add_bench_collective(CLI::App& bench, Invocation& invocation, const std::string& op,
                          const std::string& what);

}  // namespace sealane::cli
