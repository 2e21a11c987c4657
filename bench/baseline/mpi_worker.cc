// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One rank of the MPI baseline of `sealane bench allreduce`, started by mpirun.
// Usage: sealane-bench-mpi PIPES

#include <mpi.h>

#include "bench/worker_protocol.h"

namespace {

using sealane::bench::WorkerCommand;

void run_once(const std::string& op, const std::vector<float>& in, std::vector<float>& out) {
  const int in_count = static_cast<int>(in.size());
  const int out_count = static_cast<int>(out.size());
  if (op == "allreduce") {
    MPI_Allreduce(in.data(), out.data(), in_count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (op == "reduce_scatter") {
    MPI_Reduce_scatter_block(in.data(), out.data(), out_count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (op == "all_gather") {
    MPI_Allgather(in.data(), in_count, MPI_FLOAT, out.data(), in_count, MPI_FLOAT, MPI_COMM_WORLD);
  } else {
    MPI_Bcast(out.data(), out_count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc == 2) {
    sealane::bench::WorkerPipes pipes(argv[1], rank);
    WorkerCommand command;
    std::vector<float> in;
    std::vector<float> out;
    while (pipes.next(command)) {
      const sealane::bench::WorkerShape shape(command.op, command.bytes, size);
      if (in.size() != shape.in || command.check) {
        in = sealane::bench::make_contribution(rank, shape.in);
        out.assign(shape.out, 0);
        if (command.op == "broadcast" && rank == 0) out = in;
      }
      run_once(command.op, in, out);
      const uint64_t wrong =
          command.check ? sealane::bench::count_wrong(command.op, rank, size, out) : 0;
      if (command.check) run_once(command.op, in, out);  // meet again
      pipes.answer(wrong, sealane::bench::timed_iterations(command.iterations,
                                                           [&] { run_once(command.op, in, out); }));
    }
  }
  MPI_Finalize();
  return argc == 2 ? 0 : 2;
}
