// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "ptx/exec/executor.h"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>

namespace sealane::ptx {

Executor::~Executor() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  arrived_.notify_all();
  ended_.wait(lock, [&] { return started_ == 0; });
}

bool Executor::over(const Grid& grid) {
  const bool all = grid.next_block == grid.blocks || grid.failed() || grid.device->cancelled();
  return all && grid.resident == 0;
}

bool Executor::others_wait_locked(const Grid& grid) const {
  for (const Block* block : parked_) {
    if (block->grid != &grid) return true;
  }
  for (const Grid* other : grids_) {
    if (other != &grid && other->next_block < other->blocks) return true;
  }
  return false;
}

// The next block of the next grid that may have one more, or nothing. Made outside of the lock.
Block* Executor::begin_locked(std::unique_lock<std::mutex>& lock) {
  for (size_t i = 0; i < grids_.size(); ++i) {
    Grid& grid = *grids_[next_grid_++ % grids_.size()];
    if (grid.failed() || grid.next_block >= grid.blocks || grid.resident >= grid.resident_max) {
      continue;
    }
    const uint64_t number = grid.next_block++;
    ++grid.resident;
    std::unique_ptr<Block> block;
    if (!grid.idle.empty()) {
      block = std::move(grid.idle.back());
      grid.idle.pop_back();
    }
    lock.unlock();
    if (!block) block = std::make_unique<Block>();
    block->begin(grid, number);
    lock.lock();
    return block.release();
  }
  return nullptr;
}

// The block that has waited longest, or nothing.
Block* Executor::resume_locked(std::unique_lock<std::mutex>& lock) {
  if (parked_.empty()) return nullptr;
  Block* block = parked_.front();
  parked_.pop_front();
  // All that could run waits for somebody else: let the somebody have this CPU.
  if (++idle_rounds_ <= 2 * (parked_.size() + 1)) return block;
  const bool long_ago = idle_rounds_ > 200 * (parked_.size() + 1);
  lock.unlock();
  if (long_ago)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  else
    std::this_thread::yield();
  lock.lock();
  return block;
}

void Executor::end(Block* block) {
  Grid& grid = *block->grid;
  block->collect_counts();
  const std::lock_guard lock(mutex_);
  grid.idle.emplace_back(block);
  --grid.resident;
  ++grid.ended_blocks;
  idle_rounds_ = 0;
  if (callers_ > 0)
    arrived_.notify_all();
  else
    arrived_.notify_one();
  if (over(grid)) ended_.notify_all();  // no sooner: who waits would wake at every block
}

// Until the block ends or has to let others.
void Executor::work_on(std::unique_lock<std::mutex>& lock, Block* block, Lookups& lookups) {
  Grid& grid = *block->grid;
  block->lookups = &lookups;
  for (;;) {
    lock.unlock();
    const bool stop = grid.failed() || grid.device->cancelled();
    const Block::Outcome outcome = stop ? Block::Outcome::ended : block->run();
    lookups.seen.store(0);
    if (outcome == Block::Outcome::ended) {
      end(block);
      lock.lock();
      return;
    }
    lock.lock();
    if (outcome == Block::Outcome::quantum) {
      idle_rounds_ = 0;
      if (!others_wait_locked(grid)) continue;
    }
    parked_.push_back(block);
    arrived_.notify_one();
    return;
  }
}

// `until`: ends with that grid; nullptr: with the executor.
void Executor::work(const Grid* until) {
  std::unique_lock lock(mutex_);
  Lookups& lookups = lookups_.emplace_back();
  lookups.forgotten = &forgotten_;
  for (;;) {
    if (until != nullptr && over(*until)) return;
    Block* block = begin_locked(lock);
    if (block == nullptr) block = resume_locked(lock);
    if (block != nullptr) {
      work_on(lock, block, lookups);
      continue;
    }
    if (until == nullptr && stopping_) break;
    arrived_.wait(lock);
  }
  --started_;
  ended_.notify_all();
}

bool Executor::start_locked() {
  // Signals of the program are none of the device's business.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread([this] {
      pthread_setname_np(pthread_self(), "sealane-emu-sm");
      work(nullptr);
    }).detach();
    ++started_;
  } catch (const std::system_error&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void Executor::run(Grid& grid) {
  std::unique_lock lock(mutex_);
  grids_.push_back(&grid);
  while (started_ < workers_ && start_locked()) {
  }
  arrived_.notify_all();
  if (started_ == 0) {
    ++callers_;
    lock.unlock();
    work(&grid);
    lock.lock();
    --callers_;
  }
  ended_.wait(lock, [&] { return over(grid); });
  std::erase(grids_, &grid);
}

void Executor::forget_windows() {
  const uint64_t now = ++forgotten_;
  std::unique_lock lock(mutex_);
  for (Lookups& one : lookups_) {
    for (uint64_t seen = one.seen; seen != 0 && seen < now; seen = one.seen) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      lock.lock();
    }
  }
}

}  // namespace sealane::ptx
