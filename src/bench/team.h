// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The ranks of one system under measurement: processes that this one started and talks to through
// named pipes (worker_protocol.h). They are ended with the object, by their process ids.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "bench/worker_protocol.h"

namespace sealane::bench {

class Team {
 public:
  // One process per rank, running `body` in a copy of this one, which has a single thread.
  using Body = std::function<void(WorkerPipes& pipes, uint32_t rank)>;
  static Result<std::unique_ptr<Team>> fork_ranks(const std::string& base, uint32_t size,
                                                  const Body& body);

  // Programs that bring their own ranks: each command line is started once; together they serve
  // `size` pairs of pipes. What they print goes to BASE.log.
  static Result<std::unique_ptr<Team>> start_programs(
      const std::string& base, uint32_t size,
      const std::vector<std::vector<std::string>>& command_lines);

  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  struct Slice {
    uint64_t wrong = 0;
    std::vector<uint64_t> times_ns;  // of the rank that took longest
  };
  // One command to all ranks; an error if a rank fails, ends or takes longer than a minute.
  Result<Slice> run(const WorkerCommand& command);

 private:
  Team(std::string base, uint32_t size) : base_(std::move(base)), size_(size) {}

  Status make_pipes();
  Status open_pipes();
  Result<std::string> read_line(uint32_t rank);
  Status send(const std::string& line);

  std::string base_;
  uint32_t size_;
  std::vector<pid_t> processes_;
  std::vector<int> commands_;
  std::vector<int> answers_;
  std::vector<std::string> pending_;  // what was read beyond a line
};

}  // namespace sealane::bench
