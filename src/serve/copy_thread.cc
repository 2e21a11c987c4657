// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/copy_thread.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "base/bytes.h"
#include "base/log.h"
#include "os/pace.h"
#include "os/thread.h"
#include "serve/errand.h"

namespace sealane::serve {
namespace {

constexpr auto kPoll = std::chrono::microseconds(40);

Instant now() { return SteadyClock().now(); }

}  // namespace

std::unique_ptr<CopyThread> CopyThread::open(GpuDriver& driver, ProgramMemory& memory,
                                             UnderWay& under_way,
                                             const CopyThreadOptions& options) {
  CopyContext context;
  const auto device = static_cast<int>(CopyThreads::device_of(options.id));
  if (driver.make_context(device, context) != kSuccess) return nullptr;
  return std::unique_ptr<CopyThread>(new CopyThread(driver, memory, under_way, options, context));
}

CopyThread::CopyThread(GpuDriver& driver, ProgramMemory& memory, UnderWay& under_way,
                       const CopyThreadOptions& options, CopyContext context)
    : driver_(driver),
      memory_(memory),
      under_way_(under_way),
      id_(options.id),
      channel_(driver, options.id, options.lane, context),
      ahead_(options.ahead) {
  copies_.reserve(CopyList::kMax);
  ended_.reserve(CopyList::kMax);
  endings_.reserve(Copies::kEndingsMax);
  events_.reserve(Copies::kToldMax);
  at_turn_.reserve(Copies::kToldMax);
  sources_.reserve(Copies::kToldMax);
  leases_.reserve(std::max(kLeasesMax, Copies::kToldMax));
}

void CopyThread::wake(std::span<const CopyId> copies) {
  Lock lock(under_way_.mutex);
  ++wakes_;
  if (thread_ == Thread::none) {
    const bool started = start_thread<&CopyThread::work>("sealane-lane", this);
    thread_ = started ? Thread::ours : Thread::callers;
  }
  const bool ours = thread_ == Thread::ours;
  lock.unlock();
  if (ours) return asked_.notify_one();
  // There was no thread to be had: from then on callers do the copy thread's work.
  if (ahead_ != nullptr) ahead_->stop();  // it must see all or nothing
  const auto over = [&] {
    return std::none_of(copies.begin(), copies.end(), [&](CopyId copy) {
      return under_way_.copies.under_way(copy) && under_way_.copies.thread_of(copy) == id_;
    });
  };
  for (;;) {
    const std::lock_guard alone(carrying_);
    lock.lock();
    if (over()) return;
    const bool did = serve_once(lock);
    lock.unlock();
    if (!did) sched_yield();
  }
}

void CopyThread::work() {
  driver_.enter_thread();
  Lock lock(under_way_.mutex);
  while (!closing_) {
    if (!serve_once(lock)) rest(lock);
  }
}

// With nothing to carry: those who seal ahead may have something for the workers, and say when to
// ask them again.
void CopyThread::rest(Lock& lock) {
  const auto asked = [&] { return closing_ || under_way_.copies.threads().pending(id_) > 0; };
  if (asked()) {
    asked_.wait_for(lock, kPoll, [&] { return closing_ || wakes_ != wakes_seen_; });
    return pace().go_on_now();
  }
  const auto until = ahead_ != nullptr ? ahead_->deadline() : std::nullopt;
  const auto left = until ? *until - now() : Duration{0};
  if (!until) {
    asked_.wait(lock, asked);
  } else if (left <= Duration{0} || !asked_.wait_for(lock, left, asked)) {
    lock.unlock();
    ahead_->look();
    lock.lock();
  }
  pace().go_on_now();
}

// False: nothing may go.
bool CopyThread::serve_once(Lock& lock) {
  wakes_seen_ = wakes_;
  look_at_events(lock);
  look_at_guards(lock);
  if (!take(lock)) return false;
  const Code code = carry(lock);
  end(lock, code);
  return true;
}

// --- 1. look

// One is enough, unless somebody plans with all of them.
void CopyThread::look_at_events(Lock& lock) {
  under_way_.copies.awaited(id_, events_);
  leases_.clear();
  for (const EventKey event : events_) {
    const auto found = under_way_.events.find(event);
    leases_.push_back(found != under_way_.events.end() ? found->second : nullptr);
  }
  for (size_t i = 0; i < events_.size(); ++i) {
    lock.unlock();  // an event that is not there any more went with its context
    const Code code = leases_[i] ? driver_.query(leases_[i]->event) : kSuccess;
    lock.lock();
    if (code == kNotReady) continue;
    under_way_.copies.handle_reached(events_[i], code);
    if (code != kSuccess) under_way_.any_failed.store(true);
    if (ahead_ == nullptr) break;
  }
  leases_.clear();
}

// Their turn has come: all that could write their sources before is done. What was sealed from
// there is compared with what is there now.
void CopyThread::look_at_guards(Lock& lock) {
  if (ahead_ == nullptr || ahead_->stopped()) return;
  under_way_.copies.at_turn(id_, at_turn_);
  if (at_turn_.empty()) return;
  sources_.clear();
  for (const CopyId copy : at_turn_) sources_.push_back(under_way_.copies.call_of(copy).host);
  lock.unlock();
  for (const Range& source : sources_) ahead_->check_guards(source);
  lock.lock();
}

bool CopyThread::take(Lock& lock) {
  const auto* taken = under_way_.copies.take(id_, now());
  if (taken == nullptr && ahead_ != nullptr && !ahead_->stopped()) {
    lock.unlock();
    const bool ready = ahead_->await_turn();
    lock.lock();
    if (ready) taken = under_way_.copies.take(id_, now());
  }
  if (taken == nullptr) return false;
  handed_ = *taken;
  copies_.clear();
  for (const CopyId copy : handed_.copies) copies_.push_back(&under_way_.held.at(copy));
  return true;
}

// --- 2. carry

// What is dropped ends with the error its context has.
Code CopyThread::carry(Lock& lock) {
  if (handed_.dropped) {
    const HeldCopy& copy = *copies_.front();
    const auto context = reinterpret_cast<uint64_t>(copy.stream->context);
    channel_.tell(copy, 0, copy.bytes, under_way_.copies.failure_of(context), now(), now());
    return kSuccess;
  }
  const bool together = handed_.copies.size() > 1 && prepare_together(lock);
  lock.unlock();
  const bool begun = together || fetch_all();
  Code code = begun ? kSuccess : kIllegalAddress;
  const bool by_turns = ahead_ != nullptr && ahead_->begin();
  if (handed_.pads > 0) {
    code = channel_.pad(handed_.pads);
  } else if (together) {
    code = channel_.carry_together(copies_, *handed_.together);
  } else if (begun) {
    code = channel_.carry(*copies_.front(), handed_.offset, handed_.bytes);
  } else {
    channel_.tell(*copies_.front(), 0, handed_.bytes, code, now(), now());
  }
  if (by_turns) ahead_->end(code == kSuccess);
  if (code != kSuccess && begun && handed_.pads == 0) channel_.replace_context();
  lock.lock();
  return code;
}

// Several at once, if there is memory to gather them in and all their sources are there. A source
// that is gone fails its own copy, and it alone.
bool CopyThread::prepare_together(Lock& lock) {
  lock.unlock();
  const bool ready = channel_.can_gather(*handed_.together) && fetch_all();
  lock.lock();
  if (ready) return true;
  handed_ = *under_way_.copies.take_alone(id_);
  copies_.resize(1);
  return false;
}

bool CopyThread::fetch_all() {
  if (channel_.direction() == Direction::to_host) return true;
  return std::all_of(copies_.begin(), copies_.end(), [&](const HeldCopy* copy) {
    return copy->program == nullptr || memory_.fetch(copy->program, copy->host, copy->bytes);
  });
}

// --- 3. end

void CopyThread::end(Lock& lock, Code code) {
  if (ahead_ != nullptr && (handed_.last || code != kSuccess)) {
    lock.unlock();
    for (const CopyId copy : handed_.copies) ahead_->settle(copy);
    lock.lock();
  }
  Copies& copies = under_way_.copies;
  copies.handle_crossed(id_, code, endings_);
  if (code != kSuccess) under_way_.any_failed.store(true);
  perform_all(lock);
  copies.handle_delivered(id_, endings_);
  perform_all(lock);
  copies.handle_ended(id_, now());
  for (const CopyId copy : handed_.copies) {  // streams may end with them, without the lock
    if (copies.under_way(copy)) continue;
    const auto held = under_way_.held.find(copy);
    ended_.push_back(std::move(held->second.stream));
    under_way_.held.erase(held);
  }
  leases_.clear();
  take_forgotten(under_way_, leases_);
  under_way_.changed.notify_all();
  lock.unlock();
  ended_.clear();
  leases_.clear();
  lock.lock();
}

void CopyThread::perform_all(Lock& lock) {
  if (endings_.empty()) return;
  lock.unlock();
  for (const Ending& ending : endings_) perform(ending);
  lock.lock();
}

void CopyThread::perform(const Ending& ending) {
  const auto held = [&](CopyId id) -> HeldCopy& {
    const auto found = std::find(handed_.copies.begin(), handed_.copies.end(), id);
    return *copies_[static_cast<size_t>(found - handed_.copies.begin())];
  };
  if (const auto* wiped = std::get_if<Wipe>(&ending)) {
    const HeldCopy& copy = held(wiped->copy);
    wipe({copy.host, static_cast<size_t>(copy.bytes)});
    if (copy.program != nullptr) memory_.deliver(copy.host, copy.program, copy.bytes);
  } else if (const auto* delivery = std::get_if<Deliver>(&ending)) {
    const HeldCopy& copy = held(delivery->copy);
    memory_.deliver(copy.host, copy.program, copy.bytes);
  } else if (std::holds_alternative<FailContext>(ending)) {
    const HeldCopy& copy = *copies_.front();
    fail_context(driver_, copy.stream->context, copy.device_address);
  } else if (const auto* gate = std::get_if<OpenGate>(&ending)) {
    // All that is carried at once is of one stream.
    channel_.open_gate(*copies_.front()->stream, gate->value);
  } else if (const auto* done = std::get_if<GiveBack>(&ending)) {
    give_back(memory_, held(done->copy));
  }
}

void CopyThread::close() {
  {
    const std::lock_guard lock(under_way_.mutex);
    closing_ = true;
  }
  asked_.notify_one();
  channel_.close();
}

}  // namespace sealane::serve
