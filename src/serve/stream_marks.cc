// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/stream_marks.h"

#include <algorithm>
#include <exception>

#include "base/log.h"
#include "serve/copy_thread.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kWordBytes = 64;  // a cache line each
constexpr uint64_t kWords = 64;      // allocated together

}  // namespace

EventPool::LeasePointer EventPool::take(ContextHandle context) {
  std::shared_ptr<Lease> lease;
  {
    const std::lock_guard lock(mutex_);
    auto& shelf = shelves_[context];
    if (!shelf) shelf = std::make_shared<Shelf>();
    lease = std::make_shared<Lease>(*this, shelf);
    if (!shelf->free.empty()) {
      lease->event = shelf->free.back();
      shelf->free.pop_back();
      return lease;
    }
  }
  return driver_.make_event(context, lease->event) == kSuccess ? lease : nullptr;
}

void EventPool::give(Shelf& shelf, EventHandle event) {
  if (event == nullptr) return;
  try {
    const std::lock_guard lock(mutex_);
    if (!shelf.gone) shelf.free.push_back(event);
  } catch (const std::exception&) {  // leases end in destructors
    driver_.drop_event(event);
  }
}

void EventPool::leave(ContextHandle context) {
  const std::lock_guard lock(mutex_);
  auto found = shelves_.extract(context);
  if (!found.empty()) leaving_.insert(std::move(found));
}

// Whoever took one meanwhile has begun another shelf: what is free of both is one again.
void EventPool::stay(ContextHandle context) {
  const std::lock_guard lock(mutex_);
  auto found = leaving_.extract(context);
  if (found.empty()) return;
  const auto before = found.mapped();
  const auto put = shelves_.insert(std::move(found));
  if (put.inserted) return;
  auto& free = put.position->second->free;
  free.insert(free.end(), before->free.begin(), before->free.end());
  before->gone = true;
}

void EventPool::forget(ContextHandle context) {
  const std::lock_guard lock(mutex_);
  auto found = leaving_.extract(context);
  if (found.empty()) found = shelves_.extract(context);
  if (!found.empty()) found.mapped()->gone = true;
}

bool GateWords::take(GateWord& out) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    uint64_t memory = 0;
    free_.reserve(lent_ + kWords);  // for all that were made: give() must not need memory
    if (driver_.allocate(context_, kWords * kWordBytes, memory) != kSuccess) return false;
    for (uint64_t i = 0; i < kWords; ++i) {
      free_.push_back({memory + i * kWordBytes, 0, context_.context});
    }
  }
  out = free_.back();
  free_.pop_back();
  ++lent_;
  return true;
}

void GateWords::give(const GateWord& word) {
  const std::lock_guard lock(mutex_);
  if (word.context == context_.context) {
    free_.push_back(word);
    --lent_;
    return;
  }
  const auto from = std::find_if(replaced_.begin(), replaced_.end(), [&](const Replaced& one) {
    return one.context.context == word.context;
  });
  if (from == replaced_.end() || --from->lent > 0) return;
  driver_.drop_context(from->context);
  replaced_.erase(from);
}

void GateWords::replace_context(const CopyContext& context) {
  const std::lock_guard lock(mutex_);
  if (lent_ == 0) {
    driver_.drop_context(context_);
  } else {
    try {
      replaced_.push_back({context_, lent_});
    } catch (const std::exception&) {  // it stays: a copy thread must not need memory
    }
  }
  context_ = context;
  free_.clear();
  lent_ = 0;
}

void GateWords::close() {
  const std::lock_guard lock(mutex_);
  for (const Replaced& one : replaced_) driver_.drop_context(one.context);
  replaced_.clear();
  driver_.drop_context(context_);
}

StreamGates::~StreamGates() {
  if (thread_ != nullptr && word_.address != 0) thread_->words().give(word_);
}

void StreamGates::set_thread(CopyThread* thread) {
  thread_ = thread;
  word_ = {};
}

Code StreamGates::put(GpuDriver& driver, StreamHandle stream, uint32_t value,
                      std::atomic<bool>& operations) {
  if (!operations.load(std::memory_order_relaxed)) return put_function(driver, stream, value);
  if (word_.address == 0) {
    if (!thread_->words().take(word_)) return kNotSupported;
    behind_ = word_.value + 1 - value;
  }
  const Code code = driver.wait_word(stream, word_.address, value + behind_);
  if (code == kSuccess) word_.value = value + behind_;
  if (code != kNotSupported) return code;
  operations.store(false);
  return put_function(driver, stream, value);
}

Code StreamGates::put_function(GpuDriver& driver, StreamHandle stream, uint32_t value) {
  auto* held = new std::shared_ptr<Ticket>(std::make_shared<Ticket>());
  {
    const std::lock_guard lock(mutex_);
    tickets_.emplace_back(value, *held);
  }
  const auto wait = [](void* data) {
    auto* ticket = static_cast<std::shared_ptr<Ticket>*>(data);
    (*ticket)->wait();
    delete ticket;
  };
  const Code code = driver.run_on_host(stream, wait, held);
  if (code == kSuccess) return code;
  delete held;
  const std::lock_guard lock(mutex_);
  tickets_.pop_back();
  return code;
}

void StreamGates::open(GpuDriver& driver, const CopyContext& from, ContextHandle stream,
                       uint32_t value) {
  if (word_.address != 0) {
    Code code = driver.set_word(from, word_.address, value + behind_);
    if (code != kSuccess) {  // a context of ours that failed, and there is no other
      code = driver.set_word_there(stream, word_.address, value + behind_);
    }
    if (code != kSuccess) SEALANE_LOG(warn, "a gate could not be opened: CUDA error %d", code);
  }
  const std::lock_guard lock(mutex_);
  const auto reached = [&](uint32_t ticket) {  // as the driver compares words: past the last one
    return static_cast<int32_t>(value - ticket) >= 0;
  };
  while (!tickets_.empty() && reached(tickets_.front().first)) {
    tickets_.front().second->finish();
    tickets_.pop_front();
  }
}

}  // namespace sealane::serve
