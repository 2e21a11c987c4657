// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/bench.h"

namespace sealane::cli {

void add_bench(CLI::App& root, Invocation& invocation) {
  auto* bench = root.add_subcommand("bench", "Measure this machine");
  bench->require_subcommand(1);
  add_bench_seal(*bench, invocation);
}

}  // namespace sealane::cli
