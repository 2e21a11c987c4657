// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A call that takes several operations of the library, or one. It ends when all that were begun
// have ended, and not before: the memory is theirs until then. Its error is that of the first that
// fails. Behind one that failed none is begun, and the group ends with it, also where the operation
// itself was not begun (there was no thread for it, say): the other ranks have begun theirs and
// would take the next call's for it, and a program that called this one without waiting has made
// that next call before it hears of the error.
//
// Concurrency: run() and add() on one thread; operations may end on any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "sealane/comm.h"

namespace sealane::adapter {

class Parts {
 public:
  // `begin` adds the parts; what it throws is an error of theirs. `done` is called once, here or on
  // the thread that ended the last; `comm` is there until then. Does not throw.
  static void run(Comm& comm, const std::function<void(Parts&)>& begin, const WorkCallback& done) {
    std::shared_ptr<Whole> whole;
    try {
      whole = std::make_shared<Whole>(comm, done);
    } catch (const std::exception& error) {
      return done(error.what());
    }
    Parts parts(std::move(whole));
    try {
      begin(parts);
    } catch (const std::exception& error) {
      parts.whole_->fail(error.what());
    }
  }

  // Calls start(callback), which starts an operation with that callback; once one has failed, not.
  template <typename Start>
  void add(const Start& start) {
    if (whole_->failed()) return;
    start(WorkCallback([whole = whole_](const std::string& error) {
      if (!error.empty()) whole->fail(error);
    }));
  }

  // Asked when all have ended. What it says, unless that is empty, becomes the error.
  void judge(std::function<std::string()> verdict) { whole_->judge(std::move(verdict)); }

 private:
  // Of all callbacks, and of run(): the last that lets go of it tells. So also an operation counts
  // whose start_ function threw, whether or not it was begun.
  class Whole {
   public:
    Whole(Comm& comm, WorkCallback done) : comm_(comm), done_(std::move(done)) {}
    ~Whole() {
      try {
        if (const std::string other = verdict_ ? verdict_() : std::string(); !other.empty()) {
          fail(other);
          error_ = other;
        }
      } catch (const std::exception&) {
        fail({});
      }
      if (failed_ && error_.empty()) error_ = kNoMemory;
      try {
        done_(error_);
      } catch (const std::exception&) {  // as the library drops what callbacks throw
      }
    }
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;

    void judge(std::function<std::string()> verdict) { verdict_ = std::move(verdict); }
    bool failed() const { return failed_; }

    void fail(const std::string& error) noexcept {
      comm_.abort();
      const std::lock_guard lock(mutex_);
      if (failed_.exchange(true)) return;
      try {
        error_ = error;
      } catch (const std::exception&) {  // kNoMemory, when it is told
      }
    }

   private:
    static constexpr const char* kNoMemory = "out of memory";  // fits where none is allocated

    Comm& comm_;
    WorkCallback done_;
    std::function<std::string()> verdict_;
    std::mutex mutex_;
    std::atomic<bool> failed_ = false;
    std::string error_;
  };

  explicit Parts(std::shared_ptr<Whole> whole) : whole_(std::move(whole)) {}

  std::shared_ptr<Whole> whole_;
};

}  // namespace sealane::adapter
