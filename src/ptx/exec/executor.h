// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The workers that run grids: as many threads as asked for, shared by all GPUs of the process. A
// block runs on one worker until it ends; one that waits for somebody's write is put aside and
// others begin, up to what would be resident on the emulated GPU, so that all that are resident
// make progress, with those of other grids and with the host.
//
// run() may be called from any number of threads; it returns when its grid has ended. Where no
// thread can be made the caller does the work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "ptx/exec/grid.h"

namespace sealane::ptx {

class Executor {
 public:
  // One worker: blocks begin in order and take turns in a fixed order.
  explicit Executor(unsigned workers) : workers_(workers == 0 ? 1 : workers) {}
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void run(Grid& grid);

  // Returns when no block uses memory it found (Device::find) before the call.
  void forget_windows();

 private:
  void work(const Grid* until);
  void work_on(std::unique_lock<std::mutex>& lock, Block* block, Lookups& lookups);
  Block* resume_locked(std::unique_lock<std::mutex>& lock);
  bool start_locked();
  static bool over(const Grid& grid);
  Block* take_locked();
  Block* begin_locked(std::unique_lock<std::mutex>& lock);
  void end(Block* block);
  bool others_wait_locked(const Grid& grid) const;

  const unsigned workers_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable ended_;
  std::vector<Grid*> grids_;
  size_t next_grid_ = 0;
  std::deque<Block*> parked_;
  uint64_t idle_rounds_ = 0;
  unsigned running_ = 0;
  bool stopping_ = false;
  unsigned started_ = 0;
  unsigned callers_ = 0;  // of run() that work themselves
  std::atomic<uint64_t> forgotten_{1};
  std::deque<Lookups> lookups_;  // of workers, past ones too
};

}  // namespace sealane::ptx
