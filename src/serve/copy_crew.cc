// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/copy_crew.h"

#include <algorithm>
#include <map>

#include "base/log.h"
#include "serve/costs.h"
#include "serve/errand.h"
#include "serve/options.h"

namespace sealane::serve {

// --- open

const char* CopyCrew::open_missing(const CopyCall& call) {
  const auto missing = [&] {
    const std::lock_guard lock(under_way_.mutex);
    const auto id = under_way_.copies.missing_thread(call);
    const bool broken = id && *id < threads_.size() && threads_[*id];
    if (broken) threads_[*id]->mend();  // not for this copy: nobody waits for it
    return broken ? std::nullopt : id;
  };
  const char* why = nullptr;
  while (missing()) {
    const std::lock_guard opening(opening_);
    const auto id = missing();
    if (!id) break;  // somebody else was quicker
    uint64_t rooms = 0;
    {
      const std::lock_guard lock(under_way_.mutex);
      rooms = under_way_.copies.threads().rooms();
    }
    std::unique_ptr<CopyThread> made = open(*id, call, why);
    const std::lock_guard lock(under_way_.mutex);
    if (threads_.size() <= *id) threads_.resize(*id + 1);
    under_way_.copies.handle_thread(*id, made != nullptr, made ? made->ahead() : nullptr, rooms);
    threads_[*id] = std::move(made);
  }
  return why;
}

std::unique_ptr<CopyThread> CopyCrew::open(CopyThreadId id, const CopyCall& call,
                                           const char*& why) {
  const int device = static_cast<int>(call.device);
  CopyThreadOptions wanted{.id = id, .lane = next_number(device), .crew = &threads_};
  if (CopyThreads::is_bulk(id)) wanted.ahead = make_speculator(device, wanted.lane);
  auto made = CopyThread::open(driver_, memory_, under_way_, wanted);
  if (!made) SEALANE_LOG(info, "the driver has no context for another lane");
  const Code code = made ? probe(*made, call) : kNotSupported;
  if (code == kSuccess) return made;
  if (wanted.ahead != nullptr) wanted.ahead->stop();
  if (!made) return nullptr;
  made->close();
  if (code == kForged) {  // somebody on the bus is no reason to step aside: the error stands
    const std::lock_guard lock(under_way_.mutex);
    under_way_.copies.handle_failed(call.context, code);
    under_way_.any_failed.store(true);
  } else {
    why = "a context of ours cannot reach the program's device memory";
  }
  return nullptr;
}

// What one context of ours can reach all can. A message of our own is sent before the program has
// anything under way that could be taken for it: later ones would stand between its copies, and
// who forges one would be told of in a call, long before that copy's turn.
Code CopyCrew::probe(CopyThread& thread, const CopyCall& call) {
  if (call.device >= reached_.size()) reached_.resize(call.device + 1);
  if (reached_[call.device]) return kSuccess;
  const Code code = thread.probe(call.device_address);
  reached_[call.device] = code == kSuccess;
  return code;
}

// Those who watch tell copy threads apart by it: one that is opened again has another.
int CopyCrew::next_number(int device) {
  const auto of = static_cast<size_t>(device);
  if (of >= lanes_opened_.size()) lanes_opened_.resize(of + 1);
  return lanes_opened_[of]++;
}

LiveSpeculator* CopyCrew::make_speculator(int device, int lane) {
  LiveSpeculatorOptions made;
  made.device = device;
  made.lane = lane;
  made.policy = *speculation_.policy;
  made.costs = measure_costs(pool_.size());
  made.slot_bytes_max = options().slot_bytes_max / under_way_.copies.options().threads.bulk;
  made.page_guards = !speculation_.digests;
  if (budget_ == nullptr) budget_ = make_slot_budget(pool_.cores(), options().slot_bytes_max);
  made.budget = budget_.get();
  auto* const one = new LiveSpeculator(pool_, memory_.host(), made);
  {
    const std::lock_guard lock(under_way_.mutex);
    speculators_.push_back(one);
  }
  std::vector<Range> there;  // told without the map's lock, which it takes under its own
  memory_.host().each([&](const auto& entry) { there.push_back(entry.range); });
  for (const Range& range : there) one->allocated(range);
  return one;
}

CopyThread* CopyCrew::thread_at(CopyThreadId id) {
  const std::lock_guard lock(under_way_.mutex);
  return threads_[id].get();
}

// --- give up

// A copy thread may go when it has nothing to do and no stream of the program can still have to
// look at one of its words. What holds a stream may be the caller's to end: nobody waits for that
// longer than a moment, and what it concerns stays. One at a time: who comes second finds out what
// the first one has left.
bool CopyCrew::give_up(ProgramStreams& streams) {
  const std::lock_guard giving(giving_);
  {
    const std::unique_lock nobody_asks(entered_);  // nor is anything being opened
    const std::lock_guard lock(under_way_.mutex);
    if (std::none_of(threads_.begin(), threads_.end(), [](const auto& each) { return !!each; })) {
      return false;
    }
    under_way_.copies.handle_leaving();
  }
  const std::set<const CopyThread*> staying = find_busy(streams);
  std::vector<std::pair<CopyThreadId, std::unique_ptr<CopyThread>>> gone;
  {
    std::unique_lock lock(under_way_.mutex);
    // One that has found a context for itself has it to give.
    under_way_.changed.wait_for(lock, Errand::kPatience, [&] { return !any_mending(); });
    gone.reserve(threads_.size());
    retired_.reserve(retired_.size() + threads_.size());
    for (CopyThreadId id = 0; id < threads_.size(); ++id) {
      if (!threads_[id] || !under_way_.copies.threads().is_leaving(id)) continue;  // opened since
      const bool stays = staying.contains(threads_[id].get()) || threads_[id]->mending();
      if (stays) under_way_.copies.handle_left(id, false);
      if (!stays) gone.emplace_back(id, std::move(threads_[id]));
    }
  }
  streams.each([&](Stream& stream) {
    for (StreamGates& gates : stream.gates) {
      const bool left = std::any_of(gone.begin(), gone.end(), [&](const auto& one) {
        return one.second.get() == gates.thread();
      });
      if (left) gates.set_thread(nullptr);
    }
  });
  for (auto& [id, thread] : gone) {
    if (thread->ahead() != nullptr) thread->ahead()->stop();
    thread->close();
    const std::lock_guard lock(under_way_.mutex);
    under_way_.copies.handle_left(id, true);  // from now on another one may be opened
    retired_.push_back(std::move(thread));
  }
  if (!gone.empty()) given_.fetch_add(1);
  return !gone.empty();
}

bool CopyCrew::any_mending() const {
  return std::any_of(threads_.begin(), threads_.end(),
                     [](const auto& each) { return each && each->mending(); });
}

// Those that have something to do after a moment, and those for whose words a stream may wait.
std::set<const CopyThread*> CopyCrew::find_busy(ProgramStreams& streams) {
  streams.drop_ended();
  std::set<const CopyThread*> busy;
  {
    std::unique_lock lock(under_way_.mutex);
    under_way_.changed.wait_for(lock, Errand::kPatience, [&] { return under_way_.copies.idle(); });
    for (CopyThreadId id = 0; id < threads_.size(); ++id) {
      if (under_way_.copies.threads().pending(id) > 0) busy.insert(threads_[id].get());
    }
  }
  std::map<ContextHandle, std::set<const CopyThread*>> waited_for;
  streams.each([&](Stream& stream) {
    for (const StreamGates& gates : stream.gates) {
      if (gates.thread() != nullptr) waited_for[stream.context].insert(gates.thread());
    }
  });
  for (const auto& [context, threads] : waited_for) {
    const auto errand = std::make_shared<Errand>(
        driver_, [this, context = context] { driver_.synchronise(context); });
    if (!Errand::send(errand)) busy.insert(threads.begin(), threads.end());
  }
  return busy;
}

// --- those who seal ahead

std::vector<LiveSpeculator*> CopyCrew::speculators() {
  const std::lock_guard lock(under_way_.mutex);
  return speculators_;
}

void CopyCrew::add_host_memory(const Range& range) {
  for (LiveSpeculator* one : speculators()) one->allocated(range);
}

// A snapshot is what a copy carries from now on: what was sealed from its source is compared with
// it here. Other sources are compared when their turn has come (CopyThread::look_at_guards).
void CopyCrew::check_guards(std::span<const CopyCall> calls) {
  if (speculation_.policy == nullptr) return;
  for (const CopyCall& call : calls) {
    const bool snapshot = call.ours != 0 && call.memory != HostKind::registered;
    if (!snapshot || call.host.bytes < speculation_.policy->bulk_bytes_min) continue;
    for (LiveSpeculator* one : speculators()) one->check_guards(call.host);
  }
}

// Those who seal ahead go last: a copy that has just arrived is what they would begin with.
void CopyCrew::drain(const Range& range) {
  std::unique_lock lock(under_way_.mutex);
  do {
    under_way_.changed.wait(lock, [&] { return !under_way_.copies.touched(range); });
    if (speculation_.policy == nullptr) return;
    lock.unlock();
    for (LiveSpeculator* one : speculators()) one->freed(range);
    lock.lock();
  } while (under_way_.copies.busy(range));
}

void CopyCrew::abandon() {
  if (budget_) budget_->forget();
}

}  // namespace sealane::serve
