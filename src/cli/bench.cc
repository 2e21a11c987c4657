// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command.h"

namespace sealane::cli {

void add_bench(CLI::App& root, Invocation& invocation) {
  auto* bench = root.add_subcommand("bench", "Measure this machine");
  bench->require_subcommand(1);
  add_bench_seal(*bench, invocation);
  add_bench_copy(*bench, invocation);
  add_bench_engines(*bench, invocation);
  add_bench_ptx(*bench, invocation);
  add_bench_nccl(*bench, invocation);
  add_bench_collective(*bench, invocation, "allreduce", "Sealed all-reduce, next to plain ones");
  add_bench_collective(*bench, invocation, "reduce_scatter", "Sealed reduce-scatter");
  add_bench_collective(*bench, invocation, "all_gather", "Sealed all-gather");
  add_bench_collective(*bench, invocation, "broadcast", "Sealed broadcast");
}

}  // namespace sealane::cli
