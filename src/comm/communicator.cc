// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "base/try.h"
#include "comm/exit_hold.h"
#include "seal/engine.h"
#include "seal/reduce.h"

namespace sealane {
namespace {

constexpr uint32_t kTcpStreamsMax = 8;
constexpr size_t kWorkersKept = 2;   // one at work, one that calls back
constexpr size_t kWorkersMax = 256;  // callbacks that wait for each other

void warn_about_plain_mode() {
  std::fputs("sealane: warning: plain mode: nothing is encrypted or authenticated\n", stderr);
}

Error forked_error() {
  return usage_error(
      "the group was joined before fork() and stays with the parent: let the child join its own");
}

// Of any communicator's worker: it may wait for whatever it starts.
thread_local bool calls_back = false;

// What a callback throws is its own affair: there is nobody here to catch it.
void call_back(const Communicator::OnDone& on_done, const Status& status) {
  if (!on_done) return;
  try {
    on_done(status);
  } catch (const std::exception& error) {
    SEALANE_LOG(warn, "a callback threw: %s", error.what());
  } catch (...) {
    SEALANE_LOG(warn, "a callback threw");
  }
}

bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::reduce;
}

}  // namespace

Communicator::Communicator(JoinOptions options)
    : options_(std::move(options)), process_(getpid()), guard_(*this) {}

Result<std::unique_ptr<Communicator>> Communicator::create(JoinOptions options) {
  const ExitHold hold;
  if (!hold) return exiting_error();
  SEALANE_TRY(fill_from_environment(options));
  SEALANE_TRY(check_identity(options.self));
  options.timeout = std::clamp(options.timeout, Duration(0), kTimeoutMax);
  if (options.record_bytes < 64 || options.record_bytes % 64 != 0 || options.record_bytes > 1_MiB) {
    return usage_error("records have 64 bytes to 1 MiB, a multiple of 64");
  }
  if (options.tcp_streams > kTcpStreamsMax) {
    return usage_error(concat("at most ", kTcpStreamsMax, " TCP streams per pair"));
  }
  if (options.host.find_first_of(" \n") != std::string::npos) {
    return usage_error("a host's name has no spaces");
  }
  SEALANE_LET(const auto engine, chosen_engine());
  if (options.mode == CommMode::plain && options.self.rank == 0) warn_about_plain_mode();

  std::unique_ptr<Communicator> made(new Communicator(std::move(options)));
  if (made->options_.self.size == 1) return made;
  auto group = join(made->options_);
  made->options_.key.reset();  // they have done their work
  made->options_.pair_keys.reset();
  if (!group) return group.error();
  const std::lock_guard lock(made->mutex_);  // another thread may be in the middle of a fork()
  for (auto& keys : group->keys) {
    made->pair_keys_.push_back(keys ? std::optional<Key>(std::move(keys->pair)) : std::nullopt);
  }
  made->options_.record_bytes = group->payload_bytes;
  auto lanes =
      made->options_.mode == CommMode::plain
          ? make_plain_lanes()
          : make_sealed_lanes(made->options_.self.rank, std::move(group->keys),
                              std::move(*group->broadcast), *engine, made->options_.key_limits);
  made->runner_ = std::make_unique<Runner>(made->options_, std::move(*group), std::move(lanes));
  return made;
}

Communicator::~Communicator() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
  // A callback that still runs may start more, and with it another thread.
  while (!workers_.empty()) {
    std::thread worker = std::move(workers_.back());
    workers_.pop_back();
    lock.unlock();
    worker.join();
    lock.lock();
  }
  for (std::thread& worker : ended_) worker.join();
  let_go(std::move(runner_));
}

// ---- fork(): the group stays with the parent ----

void Communicator::before_fork() {
  mutex_.lock();
  if (runner_ != nullptr) runner_->hold_still();
}

void Communicator::after_fork_in_parent() {
  if (runner_ != nullptr) runner_->go_on();
  mutex_.unlock();
}

void Communicator::after_fork_in_child() {
  // An operation that another thread was in the middle of cannot be taken apart safely, but for the
  // sessions, which held still. Nor can the callbacks: what they hold may need a lock (an
  // interpreter's, say) that a thread had which is not here.
  static auto* const unfinished = new std::vector<std::unique_ptr<Runner>>;
  static auto* const callbacks = new std::vector<OnDone>;
  if (runner_ != nullptr) {
    runner_->forget_sessions();
    runner_->go_on();
  }
  if (busy_) unfinished->push_back(std::move(runner_));
  runner_.reset();
  pair_keys_.clear();
  // The threads are not here; what they waited for would wait for them.
  new (&workers_) std::vector<std::thread>;
  new (&ended_) std::vector<std::thread>;
  idle_ = 0;
  calling_back_ = 0;
  new (&changed_) std::condition_variable;
  for (Queued& queued : queue_) {
    callbacks->push_back(std::move(queued.on_done));
    queued.promise.set_value(forked_error());
  }
  queue_.clear();
  busy_ = false;
  ending_ = true;
  mutex_.unlock();
}

// Handlers do not run for every kind of child, and in another namespace its number can be the same.
Status Communicator::check_process() const {
  if (here_.alive() && getpid() == process_) return {};
  return forked_error();
}

// ---- Operations ----

Status Communicator::check(const Operation& operation) const {
  SEALANE_TRY(check_process());
  const uint32_t size = options_.self.size;
  if (operation.root >= size) {
    return usage_error(concat("rank ", operation.root, " is not of this group of ", size));
  }
  if (operation.collective > Collective::receive) return usage_error("no such collective");
  if (operation.label.root.value_or(0) >= size) {
    return usage_error(concat("rank ", *operation.label.root, " is not of this group of ", size));
  }
  const bool pair =
      operation.collective == Collective::send || operation.collective == Collective::receive;
  if (pair && operation.root == options_.self.rank)
    return usage_error("a rank cannot send to itself");
  if (operation.collective == Collective::barrier) return {};
  if (operation.type == ElementType::none) return usage_error("an element type is needed");
  const uint64_t in = operation.in.bytes();
  const uint64_t out = operation.out.bytes();
  // Nothing behind this adds or multiplies sizes that could wrap.
  if (const uint64_t most = kCallRecordsMax * options_.record_bytes; std::max(in, out) > most) {
    return usage_error(concat(to_string(operation.collective), ": ", std::max(in, out),
                              " bytes are more than one call moves (", most, ")"));
  }
  if (in % element_bytes(operation.type) != 0 || out % element_bytes(operation.type) != 0) {
    return usage_error("buffers must hold whole elements");
  }
  if (reduces(operation.collective) && operation.op == ReduceOperator::none) {
    return usage_error("an operator is needed: sum, avg, min or max");
  }
  bool fits = true;
  switch (operation.collective) {
    case Collective::all_reduce:
      fits = in == out;
      break;
    case Collective::reduce:
      fits = operation.root != options_.self.rank || in == out;
      break;
    case Collective::all_gather:
      fits = in * size == out;
      break;
    case Collective::reduce_scatter:
      fits = in == out * size;
      break;
    default:
      break;
  }
  if (!fits) {
    return usage_error(concat(to_string(operation.collective), ": ", in, " bytes in do not fit ",
                              out, " bytes out in a group of ", size));
  }
  return {};
}

Status Communicator::execute(Operation operation) {
  SEALANE_TRY(check_process());
  const ExitHold hold;
  if (!hold) return exiting_error();
  try {
    return runner_ != nullptr ? runner_->run(std::move(operation)) : copy(operation);
  } catch (const std::exception& error) {
    // The other ranks may be halfway through: there is no way back into step.
    const Error failure = internal_error(concat("unexpected: ", error.what()));
    return runner_ != nullptr ? runner_->fail(failure) : failure;
  }
}

// Alone: the result is the contribution.
Status Communicator::copy(Operation& operation) {
  std::unique_ptr<DeviceWindows> in_windows;
  std::unique_ptr<DeviceWindows> out_windows;
  operation.in.locate(in_windows, 1);
  operation.out.locate(out_windows, 1);
  std::vector<uint8_t> from_scratch(options_.record_bytes);
  std::vector<uint8_t> to_scratch(options_.record_bytes);
  const uint64_t bytes = std::min(operation.in.bytes(), operation.out.bytes());
  for (uint64_t at = 0; at < bytes; at += options_.record_bytes) {
    const size_t count = std::min<uint64_t>(bytes - at, options_.record_bytes);
    const Bytes from = operation.in.read(at, count, from_scratch);
    const MutableBytes to = operation.out.target(at, count, to_scratch);
    std::memmove(to.data(), from.data(), count);
    operation.out.written(at, to);
  }
  SEALANE_TRY(operation.in.finish());
  return operation.out.finish();
}

Status Communicator::run(Operation operation) {
  SEALANE_TRY(check(operation));
  {
    std::unique_lock lock(mutex_);
    if (busy_ || !queue_.empty()) {
      lock.unlock();
      return start(std::move(operation)).get();
    }
    busy_ = true;
  }
  Status status = execute(std::move(operation));
  {
    const std::lock_guard lock(mutex_);
    leave_turn();
    ensure_worker();
  }
  changed_.notify_all();
  return status;
}

std::shared_future<Status> Communicator::start(Operation operation, OnDone on_done) {
  Queued queued{std::move(operation), std::move(on_done), {}};
  std::shared_future<Status> future = queued.promise.get_future().share();
  Status status = check(queued.operation);
  if (status && !enqueue(queued)) {
    status = io_error("no thread can be made for what was started: it was not begun");
  }
  if (!status) {
    call_back(queued.on_done, status);
    queued.promise.set_value(std::move(status));
    return future;
  }
  changed_.notify_all();
  return future;
}

// False: nobody would come to it, and it is the caller's as before.
bool Communicator::enqueue(Queued& queued) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(queued));
  if (ensure_worker() && (!calls_back || somebody_is_free())) return true;
  queued = std::move(queue_.back());
  queue_.pop_back();
  return false;
}

// Somebody is there for what is queued, and not in a callback. While an operation runs one is
// enough. Where no more can be made, who calls back comes to it later; false if there is not even
// such a one. Never throws.
bool Communicator::ensure_worker() {
  for (std::thread& worker : ended_) worker.join();
  ended_.clear();
  if (queue_.empty()) return true;
  while (workers_.size() < kWorkersMax &&
         (!somebody_is_free() || (!busy_ && workers_.size() < kWorkersKept))) {
    if (!add_worker()) break;
  }
  return somebody_is_free() || !workers_.empty();
}

// Of the callbacks: in an operation at most, after which it comes to what is queued.
bool Communicator::somebody_is_free() const { return idle_ > 0 || workers_.size() > calling_back_; }

bool Communicator::add_worker() {
  try {
    workers_.emplace_back();  // first: a thread without a place could not be ended
  } catch (const std::exception&) {
    return false;
  }
  try {
    const auto body = [this] { work(); };
    workers_.back() = options_.make_thread ? options_.make_thread(body) : std::thread(body);
  } catch (const std::exception&) {
    workers_.pop_back();
    return false;
  }
  ++idle_;
  return true;
}

// Whoever was busy no longer is, and holds the lock. What was asked of it meanwhile is done now.
void Communicator::leave_turn() {
  busy_ = false;
  if (runner_ == nullptr) return;
  const ExitHold hold;
  if (hold && aborted_) static_cast<void>(runner_->fail(aborted_error()));
  failure_ = runner_->failure();
}

void Communicator::abort() {
  if (!check_process()) return;
  const std::lock_guard lock(mutex_);
  if (runner_ == nullptr) return;
  aborted_ = true;
  runner_->stop();
  if (!busy_) leave_turn();
}

std::optional<Error> Communicator::failure() {
  SEALANE_TRY(check_process());
  const std::lock_guard lock(mutex_);
  listen();
  return failure_;
}

bool Communicator::gone(uint32_t rank) {
  if (!check_process() || rank >= options_.self.size) return true;
  const std::lock_guard lock(mutex_);
  listen();
  return rank < gone_.size() && gone_[rank];
}

// To the other ranks, with the lock held, unless whoever runs an operation does that.
void Communicator::listen() {
  const ExitHold hold;
  if (!hold || runner_ == nullptr || busy_) return;
  if (!failure_) static_cast<void>(runner_->listen());
  leave_turn();
  gone_ = runner_->gone();
}

Result<PairKeys> Communicator::pair_keys(const std::vector<uint32_t>& ranks) const {
  SEALANE_TRY(check_process());
  PairKeys out;
  std::vector<bool> named(options_.self.size);
  for (const uint32_t rank : ranks) {
    if (rank >= named.size() || named[rank]) {
      return usage_error(
          concat("rank ", rank, " is named twice, or not of this group of ", options_.self.size));
    }
    named[rank] = true;
    const bool self = rank == options_.self.rank;
    out.by_rank.push_back(self ? std::nullopt : std::optional<Key>(pair_keys_[rank]->duplicate()));
  }
  if (!named[options_.self.rank]) return usage_error("this rank is not among those that join");
  return out;
}

// The calling one, which holds the lock and does nothing more.
void Communicator::retire_worker() {
  const auto mine = std::find_if(workers_.begin(), workers_.end(), [](const std::thread& worker) {
    return worker.get_id() == std::this_thread::get_id();
  });
  if (mine == workers_.end()) return;  // somebody waits for it already
  ended_.push_back(std::move(*mine));
  workers_.erase(mine);
}

void Communicator::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return (!queue_.empty() && !busy_) || (ending_ && queue_.empty()); });
    --idle_;
    if (queue_.empty()) return;
    Queued next = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    std::optional<ExitHold> hold(std::in_place, ExitHold::Thread::ours);
    Status status = execute(std::move(next.operation));
    lock.lock();
    leave_turn();
    hold.reset();
    if (next.on_done) {
      ++calling_back_;
      ensure_worker();
      lock.unlock();
      changed_.notify_all();
      calls_back = true;
      call_back(next.on_done, status);
      next.on_done = {};  // with what it holds, which may take any lock
      calls_back = false;
      lock.lock();
      --calling_back_;
    }
    next.promise.set_value(std::move(status));
    changed_.notify_all();  // also of one who retires: others wait for what is queued
    if (idle_ >= kWorkersKept) return retire_worker();
    ++idle_;
  }
}

}  // namespace sealane
