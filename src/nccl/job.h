// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Ranks to play with: processes of this machine that share a page of memory, which stands for
// NCCL's bootstrap (it carries handles and nothing else) and for what a launcher would collect at
// the end.
//
// The first process never loads the plugin: a rank that crashes, hangs or is killed is a result.
//
// Concurrency: Job is used before and after run(); a rank has its Seat to itself.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "nccl/plugin_table.h"

namespace sealane::nccl {

constexpr int kRanksMax = 8;
constexpr int kLinksMax = 16;  // connections from one rank to another in one job

struct Board;  // the shared page

// What one rank sees of its job.
class Seat {
 public:
  Seat(Board& board, int rank, int ranks) : board_(board), rank_(rank), ranks_(ranks) {}

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // Leaves the handle of a listener for `from`; waits for the one `to` left.
  void leave_handle(int from, int link, const HandleBytes& handle);
  Result<HandleBytes> take_handle(int to, int link, Duration patience);

  // Marks that this rank has come to a point, and waits until another has.
  void reach(int point);
  Status await(int rank, int point, Duration patience);
  bool reached(int rank, int point) const;
  pid_t process_of(int rank) const;

  void put_number(int index, double value);  // for the first process
  double number_of(int rank, int index) const;
  void put_line(const std::string& line);  // a WARN of the plugin's

 private:
  Board& board_;
  int rank_;
  int ranks_;
};

// Asked now and then while a job runs; true ends it. Set before a job is run.
void set_stop(bool (*stop)());

struct Outcome {
  bool ended = false;  // by itself, with exit code 0 or 1
  bool passed = false;
  std::string words;  // why not, or how it ended
  std::vector<double> numbers;
  std::string plugin_line;  // the last WARN in NCCL's log
};

// Runs `body` in a process per rank. A rank that has not ended after `patience` is killed: it
// hangs. `environment` is set in every rank, "NAME=value" or, for one rank, "2:NAME=value".
std::vector<Outcome> run_job(int ranks, Duration patience,
                             const std::vector<std::string>& environment,
                             const std::function<Status(Seat&)>& body);

}  // namespace sealane::nccl
