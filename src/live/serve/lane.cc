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
                                 Direction direction) {
  LaneContext context;
  if (driver.make_lane(device, context) != kSuccess) return nullptr;
  return std::unique_ptr<Lane>(new Lane(driver, owner, device, direction, context));
}

bool Lane::reaches(uint64_t device_address) {
  uint32_t unused = 0;
  return driver_.copy(context_, Direction::to_host, device_address, &unused, 1) == kSuccess;
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
    asked_.wait(lock, [&] { return closing_ || !requests_.empty(); });
    if (requests_.empty()) return;
    // Requests are added at the end and removed by us alone, so this position stays valid.
    auto next = requests_.begin();
    const size_t count = requests_.size();
    lock.unlock();
    size_t seen = 0;
    while (seen < count && !may_go(*next)) {
      ++seen;
      if (seen < count) ++next;
    }
    if (seen == count) {
      lock.lock();
      if (requests_.size() == count) asked_.wait_for(lock, kPoll);
      continue;
    }
    carry(*next);
    lock.lock();
    requests_.erase(next);
    pending_.fetch_sub(1);
    changed_.notify_all();
  }
}

void Lane::carry(LaneRequest& request) {
  const bool timed = watched();
  Event event;
  if (timed) event.begin = SteadyClock().now();
  copy_in_flight() = {request.id, {reinterpret_cast<uint64_t>(request.host), request.bytes}};
  const Code code =
      owner_.departs(request)
          ? driver_.copy(context_, direction_, request.device_address, request.host, request.bytes)
          : kIllegalAddress;
  copy_in_flight() = {};
  if (code != kSuccess && code != kIllegalAddress) {
    // A context whose copy failed does nothing more. The gates still have to open, so that whoever
    // waits behind them learns of the error.
    LaneContext fresh;
    if (driver_.make_lane(device_, fresh) == kSuccess) context_ = fresh;
  }
  if (code == kSuccess) owner_.landed(request);
  open_gate(request);
  if (timed) {
    event.kind = EventKind::carried;
    event.direction = direction_;
    event.device = static_cast<uint8_t>(device_);
    event.code = code;
    event.id = request.id;
    event.bytes = request.bytes;
    event.host = reinterpret_cast<uint64_t>(request.host);
    event.device_address = request.device_address;
    event.end = SteadyClock().now();
    report(event);
  }
  owner_.carried(request, direction_, code);
  request.ticket->finish();
}

void Lane::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  asked_.notify_one();
  driver_.drop_lane(context_);
}

void Lane::open_gate(const LaneRequest& request) {
  if (request.gate_word == 0) return;
  const Code code = driver_.set_word(context_, request.gate_word, request.gate_value);
  if (code != kSuccess) SEALANE_LOG(warn, "a gate could not be opened: CUDA error %d", code);
}

}  // namespace sealane::serve
