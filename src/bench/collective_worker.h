// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One of our own ranks in `sealane bench allreduce`: joins a group and does what it is told.
#pragma once

#include <vector>

#include "base/result.h"
#include "bench/worker_protocol.h"
#include "comm/communicator.h"

namespace sealane::bench {

struct Measured {
  uint64_t wrong = 0;
  std::vector<uint64_t> times_ns;
};

// Buffers are kept from call to call while the operation stays the same.
class CollectiveJob {
 public:
  explicit CollectiveJob(Communicator& group) : group_(group) {}
  Result<Measured> run(const WorkerCommand& command);

  // One operation, untimed: how it ended, and if well, how many elements of its result are wrong.
  Result<uint64_t> run_once(const WorkerCommand& command);

 private:
  void prepare(const WorkerCommand& command);
  Operation operation() const;

  Communicator& group_;
  WorkerCommand now_;
  mutable std::vector<float> in_;
  mutable std::vector<float> out_;
};

void serve_collectives(WorkerPipes& pipes, const JoinOptions& options);

}  // namespace sealane::bench
