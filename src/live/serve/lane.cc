// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/lane.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <chrono>

#include "base/log.h"
#include "live/serve/events.h"
#include "live/serve/messages.h"

namespace sealane::serve {
namespace {

constexpr auto kPoll = std::chrono::microseconds(40);
constexpr uint64_t kWordBytes = 64;  // a cache line each
constexpr uint64_t kWords = 64;      // allocated together

}  // namespace

std::unique_ptr<Lane> Lane::open(GpuDriver& driver, LaneOwner& owner, int device,
                                 Direction direction, Ahead* ahead) {
  LaneContext context;
  if (driver.make_lane(device, context) != kSuccess) return nullptr;
  return std::unique_ptr<Lane>(new Lane(driver, owner, device, direction, context, ahead));
}

Code Lane::probe(uint64_t device_address) {
  uint32_t unused = 0;
  return driver_.copy(context_, Direction::to_host, device_address, &unused, 1);
}

bool Lane::take_word(GateWord& out) {
  const std::lock_guard lock(mutex_);
  if (free_words_.empty()) {
    uint64_t memory = 0;
    if (driver_.allocate(context_, kWords * kWordBytes, memory) != kSuccess) return false;
    for (uint64_t i = 0; i < kWords; ++i) free_words_.push_back({memory + i * kWordBytes, 0});
  }
  out = free_words_.back();
  free_words_.pop_back();
  return true;
}

// Its value goes on from where it was: an old gate may still have to look at it.
void Lane::give_word(const GateWord& word) {
  const std::lock_guard lock(mutex_);
  free_words_.push_back(word);
}

bool Lane::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto body = [](void* self) -> void* {
    static_cast<Lane*>(self)->work();
    return nullptr;
  };
  pthread_t thread;
  const bool running = pthread_create(&thread, nullptr, body, this) == 0;
  if (running) {
    pthread_setname_np(thread, "sealane-lane");
    pthread_detach(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return running;
}

void Lane::ask(LaneRequest request) {
  std::unique_lock lock(mutex_);
  if (!started_) started_ = start();
  if (!started_) {  // no thread to be had: the caller does the lane's work
    lock.unlock();
    while (!may_go(request)) sched_yield();
    carry(request);
    return;
  }
  pending_.fetch_add(1);
  requests_.push_back(std::move(request));
  lock.unlock();
  asked_.notify_one();
}

bool Lane::may_go(const LaneRequest& request) {
  for (const auto& ticket : request.behind) {
    if (!ticket->finished()) return false;
  }
  return driver_.query(request.after->event) != kNotReady;
}

void Lane::work() {
  driver_.enter_thread();
  std::unique_lock lock(mutex_);
  for (;;) {
    await_requests(lock);
    if (requests_.empty()) return;
    // Requests are added at the end and removed by us alone, so these positions stay valid.
    const auto first = requests_.begin();
    const size_t count = requests_.size();
    lock.unlock();
    const bool by_turns = ahead_ != nullptr && !ahead_->stopped();
    const auto done = by_turns ? carry_by_turns(first, count) : carry_first(first, count);
    lock.lock();
    if (done == requests_.end()) {
      if (requests_.size() == count) asked_.wait_for(lock, kPoll);
      continue;
    }
    requests_.erase(done);
    pending_.fetch_sub(1);
    changed_.notify_all();
  }
}

// Meanwhile the core may have something for the workers: it says when to ask it again.
void Lane::await_requests(std::unique_lock<std::mutex>& lock) {
  const auto over = [&] { return closing_ || !requests_.empty(); };
  while (!over()) {
    const auto until = ahead_ != nullptr ? ahead_->deadline() : std::nullopt;
    if (!until) return asked_.wait(lock, over);
    const auto rest = *until - SteadyClock().now();
    if (rest > Duration{0} && asked_.wait_for(lock, rest, over)) return;
    lock.unlock();
    ahead_->look();
    lock.lock();
  }
}

Lane::Requests::iterator Lane::carry_first(Requests::iterator next, size_t count) {
  for (size_t seen = 0; seen < count; ++seen, ++next) {
    if (!may_go(*next)) continue;
    carry(*next);
    return next;
  }
  return requests_.end();
}

// The core decides which of those that may go goes first, in how many pieces, and what must be sent
// in between to keep the positions of what is sealed already.
Lane::Requests::iterator Lane::carry_by_turns(Requests::iterator first, size_t count) {
  auto request = first;
  for (size_t i = 0; i < count; ++i, ++request) {
    if (request->told_ready || !may_go(*request)) continue;
    ahead_->ready(request->flight);
    request->told_ready = true;
  }
  while (const auto turn = ahead_->next()) {
    ahead_->begin(*turn);
    if (turn->flight == kNone) {
      ahead_->end(*turn, pad(turn->messages) == kSuccess);
      continue;
    }
    request = first;
    while (request->flight != turn->flight) ++request;
    const Code code = move(*request, turn->offset, turn->bytes);
    ahead_->end(*turn, code == kSuccess);
    request->carried_bytes += turn->bytes;
    if (code == kSuccess && request->carried_bytes < request->bytes) continue;
    finish(*request, code);
    return request;
  }
  return requests_.end();
}

// Messages that carry nothing anybody reads.
Code Lane::pad(uint64_t count) {
  if (pad_word_.address == 0 && !take_word(pad_word_)) return kNotSupported;
  uint8_t nothing = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const Code code = stand_in_.copy(context_, pad_word_.address, &nothing, 1);
    if (code != kSuccess) return code;
  }
  return kSuccess;
}

Code Lane::move(const LaneRequest& request, uint64_t offset, uint64_t bytes) {
  const bool timed = watched();
  Event event;
  if (timed) event.begin = SteadyClock().now();
  uint8_t* const host = static_cast<uint8_t*>(request.host) + offset;
  copy_in_flight() = {request.id, {reinterpret_cast<uint64_t>(host), bytes}};
  const uint64_t there = request.device_address + offset;
  Code code = kIllegalAddress;
  if (owner_.departs(request)) {
    code = request.drivers ? driver_.copy(context_, direction_, there, host, bytes)
                           : stand_in_.copy(context_, there, host, bytes);
  }
  copy_in_flight() = {};
  if (timed) {
    event.kind = EventKind::carried;
    event.direction = direction_;
    event.device = static_cast<uint8_t>(device_);
    event.code = code;
    event.id = request.id;
    event.bytes = bytes;
    event.host = reinterpret_cast<uint64_t>(host);
    event.device_address = there;
    event.end = SteadyClock().now();
    report(event);
  }
  return code;
}

void Lane::carry(LaneRequest& request) { finish(request, move(request, 0, request.bytes)); }

void Lane::finish(LaneRequest& request, Code code) {
  if (code != kSuccess && code != kIllegalAddress) {
    // A context whose copy failed does nothing more. The gates still have to open, so that whoever
    // waits behind them learns of the error.
    LaneContext fresh;
    if (driver_.make_lane(device_, fresh) == kSuccess) context_ = fresh;
  }
  if (code == kSuccess) owner_.landed(request);
  open_gate(request);
  owner_.carried(request, direction_, code);
  request.ticket->finish();
}

void Lane::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  asked_.notify_one();
  stand_in_.drop();
  driver_.drop_lane(context_);
}

void Lane::open_gate(const LaneRequest& request) {
  if (request.gate_word == 0) return;
  const Code code = driver_.set_word(context_, request.gate_word, request.gate_value);
  if (code != kSuccess) SEALANE_LOG(warn, "a gate could not be opened: CUDA error %d", code);
}

}  // namespace sealane::serve
