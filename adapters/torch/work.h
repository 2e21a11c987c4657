// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// An operation as PyTorch waits for it: an object to wait on, and a future whose continuations run
// on the thread that finished the operation, in the order that turns.h explains.
#pragma once

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tensors.h"
#include "turns.h"
#include "version.h"

namespace sealane::adapter {

// As the library cuts its own: what programs give for ever would wrap as a clock's nanoseconds.
constexpr std::chrono::milliseconds kTimeoutMax = std::chrono::hours(24 * 365);

// The rank of the world that an operation waits for, or -1. Asked only before the operation ends.
using Awaited = std::function<int()>;

class TorchWork final : public c10d::Work {
 public:
  // Messages between two ranks take no turns: `turns` is null.
  TorchWork(int rank, c10d::OpType type, const char* title, uint64_t number, Staged staged,
            std::vector<at::Tensor> results, Awaited awaited, std::shared_ptr<Turns> turns)
      : Work(rank, type, title, staged.shown().empty() ? results : staged.shown()),
        name_(std::strchr(title, ':') + 1),
        number_(number),
        awaited_(std::move(awaited)),
        turns_(std::move(turns)),
        staged_(std::move(staged)),
        results_(std::move(results)),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()), devices_of(results_))) {}

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    if (turns_ != nullptr) turns_->await(turn_);  // what is hung on it may be waited for here
    const std::lock_guard lock(future_mutex_);
    future_given_ = true;
    if (turns_ != nullptr && !ended_) turns_->expect_continuation(turn_);
    return future_;
  }
  std::vector<at::Tensor> result() override { return results_; }
#if defined(SEALANE_TORCH_NUMBERS_WORK)
  uint64_t getSequencenumber() const override { return number_; }
#endif

  bool wait(std::chrono::milliseconds timeout) override {
    if (turns_ != nullptr) turns_->await(turn_);
    if (timeout != kNoTimeout) wait_at_most(timeout);
    return Work::wait(kNoTimeout);
  }

  const Turns::Pointer& turn() const { return turn_; }
  const std::string& name() const { return name_; }

  void end(const std::string& error) {
    std::exception_ptr failure;
    try {
      if (!error.empty()) throw std::runtime_error("sealane: " + error);
      staged_.deliver();
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    staged_ = Staged();
    if (turns_ == nullptr) return complete(failure);
    if (end_turn(failure)) turns_->run_continuations(turn_, [&] { complete(failure); });
  }

 private:
  // True if continuations may be there to run. Whoever asks for the future holds Python's lock and
  // waits for this one: what is done here must not need Python.
  bool end_turn(const std::exception_ptr& failure) {
    const std::lock_guard lock(future_mutex_);
    ended_ = true;
    turns_->end(turn_);
    if (!future_given_) complete(failure);  // before anybody can hang something on it
    return future_given_;
  }

  void complete(const std::exception_ptr& failure) {
    finish(failure);  // before the future: its continuations may ask
    if (failure == nullptr) {
      future_->markCompleted(c10::IValue(results_));
    } else {
      future_->setError(failure);
    }
  }

  void wait_at_most(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    const std::chrono::milliseconds at_most = std::min(timeout, kTimeoutMax);
    if (cv_.wait_for(lock, at_most, [&] { return completed_; })) return;
    // While the lock is held the operation cannot end, nor the group that would wait for its end.
    const int peer = awaited_();
    throw std::runtime_error("sealane: " + name_ + ": not done after " +
                             std::to_string(timeout.count()) + " ms" +
                             (peer < 0 ? "" : "; it waits for rank " + std::to_string(peer)));
  }

  std::string name_;
  [[maybe_unused]] uint64_t number_;
  Awaited awaited_;
  std::shared_ptr<Turns> turns_;
  Turns::Pointer turn_ = std::make_shared<Turns::Turn>();
  Staged staged_;
  std::vector<at::Tensor> results_;
  std::mutex future_mutex_;
  bool ended_ = false;
  bool future_given_ = false;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace sealane::adapter
