// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "turns.h"

#include <unistd.h>

#include <utility>

namespace sealane::adapter {
namespace {

// Whose continuations run on this thread.
struct Here {
  const Turns* turns = nullptr;
  Turns::Pointer turn;
};
thread_local Here here;

const std::thread::id kNobody;

}  // namespace

Turns::Turns() : process_(getpid()) {}

bool Turns::forked() const { return getpid() != process_; }

void Turns::add(const Pointer& turn, std::function<void()> begin) {
  if (forked()) return begin();
  turn->begin = std::move(begin);
  std::unique_lock lock(mutex_);
  turn->caller = here.turns == this ? here.turn : program_;
  turn->caller->last = turn;
  turn->caller->waiting.push_back(turn);
  ++unfinished_;
  advance(turn->caller);
  begin_ready(lock);
}

void Turns::expect_continuation(const Pointer& turn) {
  if (forked() || turn->caller == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (turn->caller->last != turn) return;
  turn->holds = true;
  if (turn->begun) turn->caller->blocker = turn;
}

// Nobody waits for one that holds back nobody, so nothing begins.
void Turns::end(const Pointer& turn) {
  if (forked()) return;
  const std::lock_guard lock(mutex_);
  if (turn->holds) return;
  turn->returned = true;
  --unfinished_;
  changed_.notify_all();
  settle(turn);
}

void Turns::run_continuations(const Pointer& turn, const std::function<void()>& continuations) {
  if (forked()) return continuations();
  const bool late = turn->returned;  // nobody waits for them
  hand_over();
  Here before = std::exchange(here, late ? Here() : Here{this, turn});
  continuations();
  here = std::move(before);
  if (late) return;
  std::unique_lock lock(mutex_);
  turn->returned = true;
  --unfinished_;
  changed_.notify_all();
  settle(turn);
  begin_ready(lock);
}

void Turns::await(const Pointer& turn) {
  if (here.turns != this || forked()) return;
  std::unique_lock lock(mutex_);
  for (Pointer holder = here.turn; !turn->begun && holder != nullptr && holder != turn->caller;
       holder = holder->caller) {
    if (holder->caller == nullptr || holder->caller->blocker != holder) continue;
    holder->caller->blocker = nullptr;
    advance(holder->caller);
  }
  begin_ready(lock);
}

void Turns::wait_for_all() {
  if (forked()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return unfinished_ == 0; });
}

// Lets begin what was called from there, up to one that holds back the rest.
void Turns::advance(const Pointer& caller) {
  while (caller->blocker == nullptr && !caller->waiting.empty()) {
    Pointer next = std::move(caller->waiting.front());
    caller->waiting.pop_front();
    next->begun = true;
    if (next->holds) caller->blocker = next;
    ready_.push_back(std::move(next));
  }
}

// Ends the hold of an operation whose continuations have returned, and all that they called with
// it; then of the one it was called from, if that was its last.
void Turns::settle(Pointer turn) {
  while (turn->returned && turn->blocker == nullptr && turn->waiting.empty()) {
    const Pointer caller = std::exchange(turn->caller, nullptr);
    turn->last = nullptr;
    if (caller == nullptr) return;
    if (caller->last == turn) caller->last = nullptr;
    if (caller->blocker == turn) caller->blocker = nullptr;
    advance(caller);
    turn = caller;
  }
}

// One thread at a time, so that they begin in order.
void Turns::begin_ready(std::unique_lock<std::mutex>& lock) {
  const std::thread::id self = std::this_thread::get_id();
  if (beginner_ != kNobody) return;
  beginner_ = self;
  while (beginner_ == self && !ready_.empty()) {
    std::function<void()> begin = std::exchange(ready_.front()->begin, {});
    ready_.pop_front();
    lock.unlock();
    begin();
    begin = {};  // with what it holds, which may take any lock
    lock.lock();
  }
  if (beginner_ == self) beginner_ = kNobody;
}

// An operation that ends as it begins runs its continuations inside begin_ready(), and what those
// call and wait for has to begin: so does all that is ready, and then whoever comes sees to it.
void Turns::hand_over() {
  std::unique_lock lock(mutex_);
  if (beginner_ != std::this_thread::get_id()) return;
  beginner_ = kNobody;
  begin_ready(lock);
}

}  // namespace sealane::adapter
