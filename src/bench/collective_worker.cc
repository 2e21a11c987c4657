// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/collective_worker.h"

#include "base/try.h"

namespace sealane::bench {
namespace {

Collective collective_of(const std::string& op) {
  if (op == "allreduce") return Collective::all_reduce;
  if (op == "reduce_scatter") return Collective::reduce_scatter;
  if (op == "all_gather") return Collective::all_gather;
  return Collective::broadcast;
}

Buffer buffer(std::vector<float>& values) {
  return Buffer({{reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(float)}});
}

}  // namespace

Operation CollectiveJob::operation() const {
  const Collective collective = collective_of(now_.op);
  const bool reduces =
      collective == Collective::all_reduce || collective == Collective::reduce_scatter;
  return {collective, ElementType::float32, reduces ? ReduceOperator::sum : ReduceOperator::none,
          0,          buffer(in_),          buffer(out_)};
}

void CollectiveJob::prepare(const WorkerCommand& command) {
  const WorkerShape shape(command.op, command.bytes, static_cast<int>(group_.self().size));
  if (command.op == now_.op && command.bytes == now_.bytes && !command.check) return;
  now_ = command;
  in_ = make_contribution(static_cast<int>(group_.self().rank), shape.in);
  out_.assign(shape.out, 0);
}

Result<uint64_t> CollectiveJob::run_once(const WorkerCommand& command) {
  prepare(command);
  SEALANE_TRY(group_.run(operation()));
  return count_wrong(command.op, static_cast<int>(group_.self().rank),
                     static_cast<int>(group_.self().size), out_);
}

Result<Measured> CollectiveJob::run(const WorkerCommand& command) {
  const int rank = static_cast<int>(group_.self().rank);
  const int size = static_cast<int>(group_.self().size);
  prepare(command);
  Status status;
  const Operation job = operation();
  const auto once = [&] {
    if (status) status = group_.run(job);
  };
  Measured measured;
  once();
  if (command.check && status) {
    measured.wrong = count_wrong(command.op, rank, size, out_);
    once();  // meet again: checking takes each rank another time
  }
  measured.times_ns = timed_iterations(command.iterations, once);
  if (!status) return status.error();
  return measured;
}

void serve_collectives(WorkerPipes& pipes, const JoinOptions& options) {
  auto group = Communicator::create(options);
  if (!group) return pipes.fail(group.error().message);
  CollectiveJob job(**group);
  WorkerCommand command;
  while (pipes.next(command)) {
    const auto measured = job.run(command);
    if (!measured) return pipes.fail(measured.error().message);
    pipes.answer(measured->wrong, measured->times_ns);
  }
}

}  // namespace sealane::bench
