// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams and the hardware queues they feed.
//
// A stream numbers its commands; `completed` follows. A hardware queue is a thread that runs the
// commands of its streams in the order they were submitted, each after the fences it was given. Two
// streams on one queue are therefore ordered by accident, as on a GPU: a command that waits for
// memory starves whatever stands behind it. Fences only name commands submitted earlier, so they
// cannot deadlock.
//
// A context that failed runs nothing more: its commands complete without effect.
//
// Time: a command begins when it was asked for or when what it follows ended, and ends where its
// thread is on the modelled clock then (pace.h): whoever waits for it learns that time, not the
// time of waking up.
//
// Threads: submit() of one context is serialised by its owner (Context::order_mutex_). Everything
// else is safe from any thread. Waiting is on futexes: an idle device uses no CPU.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/wait_word.h"
#include "cuda_abi/cuda_types.h"
#include "emu/device/pace.h"

namespace sealane::emu {

// What the commands of one context share.
struct Health {
  std::atomic<int> failure{CUDA_SUCCESS};  // sticky
  std::atomic<bool> closing{false};

  bool over() const { return failure.load() != CUDA_SUCCESS || closing.load(); }
  // The first failure stands. True: this is it.
  bool fail(CUresult result) {
    int none = CUDA_SUCCESS;
    return failure.compare_exchange_strong(none, result);
  }
};

class Stream;

struct Fence {
  std::shared_ptr<Stream> stream;
  uint64_t command = 0;

  bool passed() const;
  void wait() const;
};

struct Command {
  std::vector<Fence> after;
  std::function<CUresult()> run;
  bool even_if_failed = false;  // bookkeeping that others wait for
};

class HardwareQueue : public std::enable_shared_from_this<HardwareQueue> {
 public:
  explicit HardwareQueue(std::shared_ptr<Health> health) : health_(std::move(health)) {}

  bool start();  // false: there is no thread to be had
  // Without a thread the command completes without effect and the context has failed.
  void push(std::shared_ptr<Stream> stream, uint64_t number, Command command);
  void stop();  // the thread ends when it has drained

 private:
  struct Entry {
    std::shared_ptr<Stream> stream;
    uint64_t number;
    Command command;
    RealNs asked_at;
  };
  bool start_locked();
  void work();
  void run(Entry& entry);

  const std::shared_ptr<Health> health_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Entry> entries_;
  bool started_ = false;
  bool stopping_ = false;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<HardwareQueue> queue, unsigned flags, int priority, uint64_t id)
      : queue_(std::move(queue)), flags_(flags), priority_(priority), id_(id) {}
  bool uses(const HardwareQueue& queue) const { return queue_.get() == &queue; }

  Fence submit(Command command);
  Fence tail() { return {shared_from_this(), submitted_.load()}; }
  bool idle() const { return completed_.get() >= submitted_.load(); }

  unsigned flags() const { return flags_; }
  int priority() const { return priority_; }
  uint64_t id() const { return id_; }
  RealNs ended_at() const { return completed_at_.load(); }  // the last command that has
  bool blocking() const { return (flags_ & CU_STREAM_NON_BLOCKING) == 0; }

 private:
  friend struct Fence;
  friend class HardwareQueue;
  void complete(uint64_t number);

  const std::shared_ptr<HardwareQueue> queue_;
  const unsigned flags_;
  const int priority_;
  const uint64_t id_;
  std::atomic<uint64_t> submitted_{0};
  WaitWord<uint64_t> completed_{0};
  std::atomic<RealNs> completed_at_{0};
};

}  // namespace sealane::emu
