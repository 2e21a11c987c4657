// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/lane.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "base/log.h"
#include "live/serve/events.h"
#include "live/serve/messages.h"
#include "live/serve/pace.h"
#include "live/serve/thread.h"

namespace sealane::serve {
namespace {

constexpr auto kPoll = std::chrono::microseconds(40);
constexpr uint64_t kWordBytes = 64;  // a cache line each
constexpr uint64_t kWords = 64;      // allocated together
constexpr size_t kLookMax = 64;      // requests looked at for some that may travel together

}  // namespace

std::unique_ptr<Lane> Lane::open(GpuDriver& driver, LaneOwner& owner, const LaneOptions& options) {
  LaneContext context;
  if (driver.make_lane(options.carrier.device, context) != kSuccess) return nullptr;
  return std::unique_ptr<Lane>(new Lane(driver, owner, options, context));
}

Lane::Lane(GpuDriver& driver, LaneOwner& owner, const LaneOptions& options, LaneContext context)
    : driver_(driver),
      owner_(owner),
      carrier_(options.carrier),
      context_(context),
      ahead_(options.ahead),
      stand_in_(driver, options.carrier.direction),
      costs_(options.ahead == nullptr ? options.costs : std::nullopt),
      crossing_(driver, options.carrier.direction) {
  if (options.stripes > 1 && ahead_ == nullptr) {
    stripes_.emplace(driver_, carrier_, options.stripes);
  }
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

void Lane::ask(LaneRequest request) {
  std::vector<LaneRequest> one;
  one.push_back(std::move(request));
  ask(std::move(one));
}

void Lane::ask(std::vector<LaneRequest> requests) {
  std::unique_lock lock(mutex_);
  if (!started_) started_ = start_thread<&Lane::work>("sealane-lane", this);
  if (!started_) {  // no thread to be had: the caller does the lane's work
    lock.unlock();
    if (ahead_ != nullptr) ahead_->stop();  // it must see all or nothing
    for (LaneRequest& request : requests) {
      while (!may_go(request)) sched_yield();
      const std::lock_guard alone(carrying_);
      carry(request);
    }
    return;
  }
  pending_.fetch_add(requests.size());
  for (LaneRequest& request : requests) requests_.push_back(std::move(request));
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
    const size_t over = by_turns ? carry_by_turns(first, count) : carry_first(first, count);
    lock.lock();
    if (over == 0) {
      if (requests_.size() == count) asked_.wait_for(lock, kPoll);
      pace().go_on_now();
      continue;
    }
    remove_finished(first, over);
    pending_.fetch_sub(over);
    changed_.notify_all();
  }
}

// Meanwhile the core may have something for the workers: it says when to ask it again.
void Lane::await_requests(std::unique_lock<std::mutex>& lock) {
  const auto over = [&] { return closing_ || !requests_.empty(); };
  while (!over()) {
    const auto until = ahead_ != nullptr ? ahead_->deadline() : std::nullopt;
    const auto rest = until ? *until - SteadyClock().now() : Duration{0};
    if (!until) {
      asked_.wait(lock, over);
    } else if (rest <= Duration{0} || !asked_.wait_for(lock, rest, over)) {
      lock.unlock();
      ahead_->look();
      lock.lock();
    }
    pace().go_on_now();
  }
}

void Lane::remove_finished(Requests::iterator next, size_t finished) {
  while (finished > 0) {
    if (!next->over) {
      ++next;
      continue;
    }
    next = requests_.erase(next);
    --finished;
  }
}

size_t Lane::carry_first(Requests::iterator next, size_t count) {
  for (size_t seen = 0; seen < count; ++seen, ++next) {
    if (!may_go(*next)) continue;
    if (const size_t over = carry_together(next, count - seen)) return over;
    carry(*next);
    return 1;
  }
  return 0;
}

size_t Lane::carry_together(Requests::iterator first, size_t count) {
  if (!costs_ || count == 1 || first->bytes > costs_->bytes_max) return 0;
  const auto host = [](const LaneRequest& request) {
    return Range{reinterpret_cast<uint64_t>(request.host), request.bytes};
  };
  Gathering group(*costs_);
  group.begin(host(*first), first->device_address);
  together_.assign(1, &*first);
  auto next = std::next(first);
  for (size_t seen = 1; seen < std::min(count, kLookMax); ++seen, ++next) {
    if (next->after != first->after || !may_go_with(*next)) continue;
    if (group.admit(host(*next), next->device_address)) together_.push_back(&*next);
  }
  if (together_.size() == 1 || !crossing_.ready(context_, group)) return 0;
  for (const LaneRequest* request : together_) {
    if (!owner_.departs(*request)) return 0;  // a source is gone: its copy fails, and it alone
  }
  const Code code = cross(group);
  replace_context(code);
  // They are of one stream, whose word only grows: the last value opens all their gates.
  bool opened = false;
  for (auto request = together_.rbegin(); request != together_.rend(); ++request) {
    if (opened) (*request)->gate_word = 0;
    opened = opened || (*request)->gate_word != 0;
  }
  for (LaneRequest* request : together_) finish(*request, code);
  return together_.size();
}

// What it must not overtake has landed or travels before it.
bool Lane::may_go_with(const LaneRequest& request) const {
  return std::all_of(request.behind.begin(), request.behind.end(), [&](const auto& ticket) {
    return ticket->finished() ||
           std::any_of(together_.begin(), together_.end(),
                       [&](const LaneRequest* other) { return other->ticket == ticket; });
  });
}

Code Lane::cross(const Gathering& group) {
  const Instant begin = watched() ? SteadyClock().now() : Instant{};
  parts_.clear();
  for (const LaneRequest* request : together_) {
    parts_.push_back(
        {request->device_address, static_cast<uint8_t*>(request->host), request->bytes});
  }
  copy_in_flight() = {together_.front()->id,
                      {reinterpret_cast<uint64_t>(together_.front()->host), group.bytes()}};
  const Code code = crossing_.carry(context_, group, parts_);
  copy_in_flight() = {};
  if (!watched()) return code;
  // Of one crossing the first copy has the time.
  const Instant end = SteadyClock().now();
  for (const LaneRequest* request : together_) {
    const bool first = request == together_.front();
    const Piece piece{request->id, request->device_address, static_cast<uint8_t*>(request->host),
                      request->bytes, request->drivers};
    tell_carried(carrier_, piece, code, first ? begin : end, end, first ? together_.size() : 0);
  }
  return code;
}

// The core decides which of those that may go goes first, in how many pieces, and what must be sent
// in between to keep the positions of what is sealed already.
size_t Lane::carry_by_turns(Requests::iterator first, size_t count) {
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
    replace_context(code);
    finish(*request, code);
    return 1;
  }
  return 0;
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
  const Piece piece{request.id, request.device_address + offset,
                    static_cast<uint8_t*>(request.host) + offset, bytes, request.drivers};
  if (!owner_.departs(request)) {
    const Instant now = SteadyClock().now();
    if (watched()) tell_carried(carrier_, piece, kIllegalAddress, now, now, 1);
    return kIllegalAddress;
  }
  const auto own = [&](const Piece& part) {
    return carry_piece(driver_, context_, stand_in_, carrier_, part);
  };
  return stripes_ && stripes_->takes(bytes) ? stripes_->carry(piece, own) : own(piece);
}

void Lane::carry(LaneRequest& request) {
  const Code code = move(request, 0, request.bytes);
  replace_context(code);
  finish(request, code);
}

// A context whose copy failed does nothing more. The gates still have to open, so that whoever
// waits behind them learns of the error.
void Lane::replace_context(Code code) {
  if (code == kSuccess || code == kIllegalAddress) return;
  LaneContext fresh;
  if (driver_.make_lane(carrier_.device, fresh) == kSuccess) {
    const std::lock_guard lock(mutex_);  // words are allocated from other threads
    context_ = fresh;
  }
  crossing_.forget();
}

void Lane::finish(LaneRequest& request, Code code) {
  if (ahead_ != nullptr) ahead_->settle(request.host, request.bytes);
  if (code == kSuccess) {
    owner_.landed(request);
  } else {
    owner_.failed(request, carrier_.direction, code);
  }
  open_gate(request);
  owner_.carried(request, code);
  request.ticket->finish();
  request.over = true;
}

void Lane::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  asked_.notify_one();
  if (stripes_) stripes_->close();
  stand_in_.drop();
  driver_.drop_lane(context_);
}

void Lane::open_gate(const LaneRequest& request) {
  if (request.gate_word == 0) return;
  Code code = driver_.set_word(context_, request.gate_word, request.gate_value);
  if (code != kSuccess) {  // a context of ours that failed, and there is no other
    code = driver_.set_word_there(request.context, request.gate_word, request.gate_value);
  }
  if (code != kSuccess) SEALANE_LOG(warn, "a gate could not be opened: CUDA error %d", code);
}

}  // namespace sealane::serve
