// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// An operation as PyTorch waits for it: an object to wait on, and a future whose continuations run
// on the thread that finished the operation.
#pragma once

#include <ATen/core/ivalue.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tensors.h"
#include "version.h"

namespace sealane::adapter {

class TorchWork final : public c10d::Work {
 public:
  TorchWork(int rank, c10d::OpType type, const char* title, Staged staged,
            std::vector<at::Tensor> results)
      : Work(rank, type, title, results),
        staged_(std::move(staged)),
        results_(std::move(results)),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()))) {}

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  std::vector<at::Tensor> result() override { return results_; }

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
  Staged staged_;
  std::vector<at::Tensor> results_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace sealane::adapter
