// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/device/stream.h"

#include <algorithm>

#include "emu/device/thread.h"

namespace sealane::emu {

bool Fence::passed() const { return !stream || stream->completed_.get() >= command; }

void Fence::wait() const {
  if (passed()) return;
  const RealNs began = thread_ns();
  for (uint64_t now = stream->completed_.get(); now < command; now = stream->completed_.get()) {
    stream->completed_.wait_while(now);
  }
  arrive(std::max(began, stream->completed_at_.load()));
}

Fence Stream::submit(Command command) {
  const uint64_t number = submitted_.load() + 1;
  submitted_.store(number);
  queue_->push(shared_from_this(), number, std::move(command));
  return {shared_from_this(), number};
}

void Stream::complete(uint64_t number) {
  // A thread that was early for one command and late for the next must not turn time back.
  completed_at_.store(std::max(completed_at_.load(), thread_ns()));
  completed_.set(number);
}

void HardwareQueue::push(std::shared_ptr<Stream> stream, uint64_t number, Command command) {
  std::unique_lock lock(mutex_);
  if (start_locked()) {
    entries_.push_back({std::move(stream), number, std::move(command), thread_ns()});
    arrived_.notify_one();
    return;
  }
  lock.unlock();
  health_->fail(CUDA_ERROR_OPERATING_SYSTEM);
  command = {};
  stream->complete(number);
}

bool HardwareQueue::start() {
  const std::lock_guard lock(mutex_);
  return start_locked();
}

bool HardwareQueue::start_locked() {
  if (started_) return true;
  started_ = start_thread("sealane-emu-gpu", [self = shared_from_this()] { self->work(); });
  return started_;
}

void HardwareQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  arrived_.notify_one();
}

void HardwareQueue::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    const bool idle = entries_.empty();
    arrived_.wait(lock, [&] { return stopping_ || !entries_.empty(); });
    if (entries_.empty()) return;
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    lock.unlock();
    if (idle || thread_ns() < entry.asked_at) arrive(entry.asked_at);
    run(entry);
  }
}

void HardwareQueue::run(Entry& entry) {
  for (const Fence& fence : entry.command.after) fence.wait();
  if (entry.command.run && (!health_->over() || entry.command.even_if_failed)) {
    const CUresult result = entry.command.run();
    if (result != CUDA_SUCCESS) health_->fail(result);
  }
  entry.command = {};  // what it holds is gone before anybody learns that it is complete
  entry.stream->complete(entry.number);
}

}  // namespace sealane::emu
