// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command.h"

namespace sealane::cli {

void add_bench(const Command& root) {
  const Command bench = root.group("bench", "Measure this machine");
  add_bench_seal(bench);
  add_bench_copy(bench);
  add_bench_engines(bench);
  add_bench_ptx(bench);
  add_bench_nccl(bench);
  add_bench_collective(bench, "allreduce", "Sealed all-reduce, next to plain ones");
  add_bench_collective(bench, "reduce_scatter", "Sealed reduce-scatter");
  add_bench_collective(bench, "all_gather", "Sealed all-gather");
  add_bench_collective(bench, "broadcast", "Sealed broadcast");
}

}  // namespace sealane::cli
