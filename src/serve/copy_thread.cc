// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/copy_thread.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/bytes.h"
#include "base/log.h"
#include "os/pace.h"
#include "os/thread.h"
#include "serve/errand.h"
#include "serve/events.h"
#include "serve/process.h"

namespace sealane::serve {
namespace {

constexpr auto kPoll = std::chrono::microseconds(40);

Instant now() { return SteadyClock().now(); }

int device_of(CopyThreadId id) { return static_cast<int>(CopyThreads::device_of(id)); }

}  // namespace

std::unique_ptr<CopyThread> CopyThread::open(GpuDriver& driver, ProgramMemory& memory,
                                             UnderWay& under_way,
                                             const CopyThreadOptions& options) {
  CopyContext context;
  if (driver.make_context(device_of(options.id), context) != kSuccess) return nullptr;
  return std::unique_ptr<CopyThread>(new CopyThread(driver, memory, under_way, options, context));
}

CopyThread::CopyThread(GpuDriver& driver, ProgramMemory& memory, UnderWay& under_way,
                       const CopyThreadOptions& options, CopyContext context)
    : driver_(driver),
      memory_(memory),
      under_way_(under_way),
      id_(options.id),
      lane_(options.lane),
      direction_(CopyThreads::direction_of(options.id)),
      crew_(options.crew),
      context_(context),
      words_(driver, context),
      proxy_(driver, direction_),
      crossing_(driver, direction_),
      early_(driver, memory, direction_),
      ahead_(options.ahead) {
  copies_.reserve(CopyList::kMax);
  parts_.reserve(CopyList::kMax);
  ended_.reserve(CopyList::kMax);
  endings_.reserve(Copies::kEndingsMax);
  events_.reserve(Copies::kToldMax);
  at_turn_.reserve(Copies::kToldMax);
  sources_.reserve(Copies::kToldMax);
  leases_.reserve(std::max(kLeasesMax, Copies::kToldMax));
}

Code CopyThread::probe(uint64_t device_address) {
  uint32_t unused = 0;
  return driver_.copy(context_, Direction::to_host, device_address, &unused, 1);
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

void CopyThread::mend() {
  may_mend_ = true;
  asked_.notify_one();
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
  const auto asked = [&] {
    return closing_ || may_mend_ || under_way_.copies.threads().pending(id_) > 0;
  };
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
  if (may_mend_) mend_context(lock);
  look_at_events(lock);
  look_at_guards(lock);
  if (!take(lock)) return false;
  if ((broken_ || spoiled_) && !handed_.dropped) mend_context(lock);
  if (handed_.early) prepare_early(lock);
  const Code code = carry(lock);
  if (handed_.early && code == kSuccess) await_landing(lock);
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
    tell(copy, 0, copy.bytes, under_way_.copies.failure_of(key_of(copy.stream->context)), now(),
         now(), 1);
    return kSuccess;
  }
  const bool together = handed_.copies.size() > 1 && prepare_together(lock);
  const uint64_t rooms = under_way_.copies.threads().rooms();
  lock.unlock();
  const bool begun = together || fetch_all();
  Code code = begun ? kSuccess : kIllegalAddress;
  auto use = enter_context(together || handed_.between || handed_.pads > 0);
  const bool by_turns = ahead_ != nullptr && ahead_->begin();
  if (handed_.pads > 0) {
    code = pad(handed_.pads);
  } else if (together) {
    code = carry_together();
  } else if (begun) {
    code = carry_part(*copies_.front(), handed_.offset, handed_.bytes);
  } else {
    tell(*copies_.front(), 0, handed_.bytes, code, now(), now(), 1);
  }
  if (by_turns) ahead_->end(code == kSuccess);
  const bool failed = code != kSuccess && begun && handed_.pads == 0;
  if (failed) {
    early_.discard(handed_.between ? handed_.bytes : 0);
    lender_ == this ? replace_context() : lender_->spoiled_.store(true);
  }
  use.unlock();
  lock.lock();
  if (failed) tell_context(rooms);
  return code;
}

// Nobody else carries there meanwhile. Its own if it has one, or if memory of its own is in there;
// else one that is left. Where nobody has any, the copy fails with its own.
std::unique_lock<std::mutex> CopyThread::enter_context(bool own) {
  lender_ = this;
  if (own) return std::unique_lock(using_);
  if (auto mine = enter_context_of(*this)) return mine;
  for (CopyThread* const other : find_others()) {
    if (other == nullptr) continue;
    if (auto theirs = enter_context_of(*other)) {
      lender_ = other;
      return theirs;
    }
  }
  return std::unique_lock(using_);
}

std::unique_lock<std::mutex> CopyThread::enter_context_of(CopyThread& other) {
  std::unique_lock use(other.using_);
  if (other.broken_ || other.spoiled_ || other.closed_) use.unlock();
  return use;
}

// But those on which positions are planned: nobody else is to use them up.
std::array<CopyThread*, kThreadsPerDevice> CopyThread::find_others() {
  std::array<CopyThread*, kThreadsPerDevice> found{};
  if (crew_ == nullptr) return found;
  const Lock lock(under_way_.mutex);
  const CopyThreadId first = id_ - CopyThreads::place_of(id_);
  for (uint32_t place = 0; place < kThreadsPerDevice && first + place < crew_->size(); ++place) {
    const CopyThreadId id = first + place;
    if (id != id_ && !CopyThreads::is_bulk(id)) found[place] = (*crew_)[id].get();
  }
  return found;
}

// There was no room for another context. Nobody asks for copies here meanwhile: they would all be
// carried in somebody else's.
void CopyThread::mend_context(Lock& lock) {
  may_mend_ = false;
  const uint64_t rooms = under_way_.copies.threads().rooms();
  if (broken_ || spoiled_) {  // else who asked did so while it found one
    mends_now_ = true;
    lock.unlock();
    {
      const std::lock_guard use(using_);
      replace_context();
    }
    lock.lock();
    mends_now_ = false;
  }
  tell_context(rooms);
  under_way_.changed.notify_all();
}

void CopyThread::tell_context(uint64_t rooms) {
  broken_ ? under_way_.copies.handle_broken(id_, rooms) : under_way_.copies.handle_mended(id_);
}

// Several at once, if there is memory to gather them in and all their sources are there. A source
// that is gone fails its own copy, and it alone.
bool CopyThread::prepare_together(Lock& lock) {
  lock.unlock();
  const bool ready = !broken_ && crossing_.ready(context_, *handed_.together) && fetch_all();
  lock.lock();
  if (ready) return true;
  handed_ = *under_way_.copies.take_alone(id_);
  copies_.resize(1);
  return false;
}

// Where there is no memory to cross into, the copy goes when its turn has come.
void CopyThread::prepare_early(Lock& lock) {
  if (!handed_.between) return;
  lock.unlock();
  const bool ready = !broken_ && early_.ready(context_);
  lock.lock();
  if (ready) return;
  await_landing(lock);
  handed_ = *under_way_.copies.take_late(id_);
}

void CopyThread::await_landing(Lock& lock) {
  under_way_.changed.wait(lock, [&] { return under_way_.copies.may_land(id_); });
  pace().go_on_now();
}

bool CopyThread::fetch_all() {
  if (direction_ == Direction::to_host) return true;
  return std::all_of(copies_.begin(), copies_.end(), [&](const HeldCopy* copy) {
    return copy->program == nullptr || memory_.fetch(copy->program, copy->host, copy->bytes);
  });
}

// Meanwhile it is this thread's copy in flight.
Code CopyThread::carry_part(const HeldCopy& copy, uint64_t offset, uint64_t bytes) {
  const Instant begin = now();
  const bool inward = direction_ == Direction::to_device;
  const bool between = handed_.between;
  uint8_t* const host = between && !inward ? early_.host() : copy.host + offset;
  const uint64_t device = between && inward ? early_.device() : copy.device_address + offset;
  const bool drivers = copy.drivers || (between && !inward) || lender_ != this;
  this_thread().copy = copy.id;
  const Code code = drivers ? driver_.copy(lender_->context_, direction_, device, host, bytes)
                            : proxy_.copy(context_, device, host, bytes);
  this_thread().copy = 0;
  tell(copy, offset, bytes, code, begin, now(), 1);
  return code;
}

// Of one crossing the first copy has the time.
Code CopyThread::carry_together() {
  const Instant begin = now();
  parts_.clear();
  for (const HeldCopy* copy : copies_) {
    parts_.push_back({copy->device_address, copy->host, copy->bytes});
  }
  this_thread().copy = copies_.front()->id;
  const Code code = crossing_.carry(context_, *handed_.together, parts_);
  this_thread().copy = 0;
  const Instant end = now();
  for (const HeldCopy* copy : copies_) {
    const bool first = copy == copies_.front();
    tell(*copy, 0, copy->bytes, code, first ? begin : end, end, first ? copies_.size() : 0);
  }
  return code;
}

Code CopyThread::pad(uint64_t messages) {
  if (pad_word_.address == 0 && !words_.take(pad_word_)) return kNotSupported;
  uint8_t nothing = 0;
  for (uint64_t i = 0; i < messages; ++i) {
    const Code code = proxy_.copy(context_, pad_word_.address, &nothing, 1);
    if (code != kSuccess) return code;
  }
  return kSuccess;
}

void CopyThread::tell(const HeldCopy& copy, uint64_t offset, uint64_t bytes, Code code,
                      Instant begin, Instant end, size_t together) const {
  if (!watched()) return;
  Event event;
  event.kind = EventKind::carried;
  event.direction = direction_;
  event.device = static_cast<uint8_t>(device_of(id_));
  event.lane = static_cast<uint16_t>(lane_);
  event.code = code;
  event.id = copy.id;
  event.bytes = bytes;
  event.host = reinterpret_cast<uint64_t>(copy.host + offset);
  event.device_address = copy.device_address + offset;
  event.together = static_cast<uint16_t>(together);
  event.begin = begin;
  event.end = end;
  report(event);
}

// The gates still have to open, so that whoever waits behind them learns of the error. All that was
// allocated in the context that failed goes with it, but for words that gates wait for.
void CopyThread::replace_context() {
  crossing_.forget();
  early_.forget();
  CopyContext fresh;
  broken_ = driver_.make_context(device_of(id_), fresh) != kSuccess;
  if (broken_) return;
  spoiled_ = false;
  proxy_.drop();
  if (pad_word_.address != 0) words_.give(std::exchange(pad_word_, {}));
  words_.replace_context(fresh);
  context_ = fresh;
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
  const bool lands = !endings_.empty() && std::holds_alternative<Deliver>(endings_.front());
  if (handed_.between && !lands) early_.discard(handed_.bytes);
  const uint64_t rooms = copies.threads().rooms();
  const Code delivered = perform_all(lock);
  copies.handle_delivered(id_, endings_, delivered);
  if (delivered != kSuccess) under_way_.any_failed.store(true);
  if (delivered != kSuccess) tell_context(rooms);
  perform_all(lock);
  copies.handle_ended(id_, now());
  for (const CopyId copy : handed_.copies) {  // streams may end with them, without the lock
    if (copies.under_way(copy)) continue;
    const auto held = under_way_.held.find(copy);
    ended_.push_back(std::move(held->second.stream));
    under_way_.held.erase(held);
  }
  leases_.clear();
  under_way_.take_forgotten(leases_);
  under_way_.changed.notify_all();
  lock.unlock();
  ended_.clear();
  leases_.clear();
  lock.lock();
}

Code CopyThread::perform_all(Lock& lock) {
  Code code = kSuccess;
  if (endings_.empty()) return code;
  lock.unlock();
  for (const Ending& ending : endings_) {
    if (const Code one = perform(ending); one != kSuccess) code = one;
  }
  lock.lock();
  return code;
}

// An error: it was not delivered.
Code CopyThread::perform(const Ending& ending) {
  const auto held = [&](CopyId id) -> HeldCopy& {
    const auto found = std::find(handed_.copies.begin(), handed_.copies.end(), id);
    return *copies_[static_cast<size_t>(found - handed_.copies.begin())];
  };
  if (const auto* wiped = std::get_if<Wipe>(&ending)) {
    const HeldCopy& copy = held(wiped->copy);
    wipe({copy.host, static_cast<size_t>(copy.bytes)});
    if (copy.program != nullptr)
      static_cast<void>(memory_.deliver(copy.host, copy.program, copy.bytes));
  } else if (const auto* delivery = std::get_if<Deliver>(&ending)) {
    return deliver(held(delivery->copy));
  } else if (std::holds_alternative<FailContext>(ending)) {
    const HeldCopy& copy = *copies_.front();
    fail_context(driver_, copy.stream->context, copy.device_address);
  } else if (const auto* gate = std::get_if<OpenGate>(&ending)) {
    Stream& stream = *copies_.front()->stream;  // all that is carried at once is of one stream
    stream.gates[CopyThreads::place_of(id_)].open(driver_, context_, stream.context, gate->value);
  } else if (const auto* done = std::get_if<GiveBack>(&ending)) {
    give_back(memory_, held(done->copy));
  }
  return kSuccess;
}

Code CopyThread::deliver(const HeldCopy& copy) {
  if (handed_.between) {
    const std::lock_guard use(using_);
    const Code code = early_.land(context_, copy.device_address, copy.host, copy.bytes);
    if (code != kSuccess) replace_context();
    return code;
  }
  return memory_.deliver(copy.host, copy.program, copy.bytes) ? kSuccess : kIllegalAddress;
}

void CopyThread::close() {
  {
    const std::lock_guard lock(under_way_.mutex);
    closing_ = true;
  }
  asked_.notify_one();
  const std::lock_guard use(using_);
  closed_ = true;
  proxy_.drop();
  words_.close();
}

}  // namespace sealane::serve
