// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/channel/sealing.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "emu/config/config.h"
#include "emu/device/thread.h"
#include "emu/truth/counters.h"

namespace sealane::emu {
namespace {

thread_local uint64_t answered_on_this_thread = 0;

uint64_t take_answered() {
  const uint64_t bytes = answered_on_this_thread;
  answered_on_this_thread = 0;
  counters().answered_bytes += bytes;
  return bytes;
}

// The driver's own sealing thread, for the switch that says it has one. Callers wait for their job.
class SealThread {
 public:
  static SealThread& get() {
    static SealThread& made = *new SealThread;
    return made;
  }

  void run(const std::function<void()>& job) {
    if (!alive_) return job();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return job_ == nullptr; });
    job_ = &job;
    changed_.notify_all();
    changed_.wait(lock, [&] { return done_ == &job; });
    done_ = nullptr;
    changed_.notify_all();
  }

 private:
  // Where no thread can be had the caller seals.
  SealThread() : alive_(start_thread("sealane-emu-seal", [this] { work(); })) {}

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return job_ != nullptr && done_ == nullptr; });
      const std::function<void()>* job = job_;
      lock.unlock();
      (*job)();
      lock.lock();
      done_ = job;
      job_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* job_ = nullptr;
  const std::function<void()>* done_ = nullptr;
  const bool alive_;  // last: the thread uses the others
};

// Runs an AEAD call where the configuration says, and learns what was answered there.
template <typename Call>
bool run_aead(Call&& call, RealNs begin, Answered& answered) {
  bool ok = false;
  const auto job = [&] {
    take_answered();
    go_on_from(begin);
    ok = call();
    answered = {take_answered(), thread_ns()};
  };
  if (config()->seal_thread) {
    SealThread::get().run(job);
  } else {
    job();
  }
  return ok;
}

}  // namespace

void note_answered(uint64_t bytes) { answered_on_this_thread += bytes; }

std::unique_ptr<Sealer> Sealer::create(const GcmKey& key, bool encrypt) {
  const sealane_emu_sealing* functions = reach_sealing();
  if (functions == nullptr) return nullptr;
  sealane_emu_sealer* state = functions->create(
      key.data(), encrypt ? 1 : 0, config()->fresh_contexts ? 1 : 0, config()->updates);
  if (state == nullptr) return nullptr;
  return std::unique_ptr<Sealer>(new Sealer(*functions, state));
}

Sealer::~Sealer() { functions_.destroy(state_); }

bool Sealer::seal(sealane_emu_message& message, RealNs begin, Answered& answered) {
  return run_aead([&] { return functions_.seal(state_, &message) == 1; }, begin, answered);
}

bool Sealer::open(const sealane_emu_message& message, RealNs begin, Answered& answered) {
  return run_aead([&] { return functions_.open(state_, &message) == 1; }, begin, answered);
}

}  // namespace sealane::emu
