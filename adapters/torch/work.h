// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// An operation as PyTorch waits for it: an object to wait on, and a future whose continuations run
// on the thread that finished the operation.
#pragma once

#include <ATen/core/ivalue.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tensors.h"
#include "version.h"

namespace sealane::adapter {

// The rank of the world that an operation waits for, or -1. Asked only before the operation ends.
using Awaited = std::function<int()>;

class TorchWork final : public c10d::Work {
 public:
  TorchWork(int rank, c10d::OpType type, const char* title, Staged staged,
            std::vector<at::Tensor> results, Awaited awaited)
      : Work(rank, type, title, results),
        name_(std::strchr(title, ':') + 1),
        awaited_(std::move(awaited)),
        staged_(std::move(staged)),
        results_(std::move(results)),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()))) {}

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  std::vector<at::Tensor> result() override { return results_; }

  bool wait(std::chrono::milliseconds timeout) override {
    if (timeout != kNoTimeout) wait_at_most(timeout);
    return Work::wait(kNoTimeout);
  }

  void end(const std::string& error) {
    std::exception_ptr failure;
    try {
      if (!error.empty()) throw std::runtime_error("sealane: " + error);
      staged_.deliver();
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    staged_ = Staged();
    finish(failure);  // before the future: its continuations may ask
    if (failure == nullptr) {
      future_->markCompleted(c10::IValue(results_));
    } else {
      future_->setError(failure);
    }
  }

 private:
  void wait_at_most(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    if (cv_.wait_for(lock, timeout, [&] { return completed_; })) return;
    // While the lock is held the operation cannot end, nor the group that would wait for its end.
    const int peer = awaited_();
    throw std::runtime_error("sealane: " + name_ + ": not done after " +
                             std::to_string(timeout.count()) + " ms" +
                             (peer < 0 ? "" : "; it waits for rank " + std::to_string(peer)));
  }

  std::string name_;
  Awaited awaited_;
  Staged staged_;
  std::vector<at::Tensor> results_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace sealane::adapter
