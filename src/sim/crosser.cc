// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/crosser.h"

#include <algorithm>
#include <utility>

#include "platform/cost.h"

namespace sealane::sim {

bool Crosser::go_on() {
  if (awaits_ == Awaits::end) return end_crossing();
  if (awaits_ == Awaits::landing) {
    if (!shared_.copies.may_land(id_)) return false;
    awaits_ = Awaits::nothing;
    if (!std::exchange(late_, false)) return end_crossing();
    crossing_ = shared_.copies.take_late(id_);
    begin();
  } else if (awaits_ == Awaits::message) {
    start_message();
  } else if (crossing_ == nullptr) {
    start();
  }
  return false;
}

void Crosser::start() {
  shared_.copies.at_turn(id_, shared_.at_turn);
  for (const CopyId copy : shared_.at_turn) {
    if (!ahead_) break;
    guard_debt_ += ahead_->check_guards(shared_.copies.call_of(copy).host);
  }
  crossing_ = shared_.copies.take(id_, world_.now());
  if (crossing_ == nullptr) return;
  ++shared_.crossings;
  const bool several = crossing_->copies.size() > 1;
  if (several && world_.random.chance(world_.setup.faults.apart)) {
    crossing_ = shared_.copies.take_alone(id_);
  }
  late_ = crossing_->early && world_.random.chance(world_.setup.faults.apart);
  if (late_) {
    awaits_ = Awaits::landing;
  } else {
    begin();
  }
}

void Crosser::begin() {
  code_ = 0;
  tampered_.reset();
  contents_.clear();
  sent_ = 0;
  seen_ = false;
  const Speculator* const ahead = ahead_ ? &ahead_->speculator() : nullptr;
  by_turns_ = ahead != nullptr && ahead->crossing() && !ahead->stopped();
  if (crossing_->dropped) {
    world_.events.add(world_.now(), EventKind::crossed, id_);
    return;
  }
  begin_crossing();
  if (crossing_->pads > 0) {
    start_pads();
  } else if (by_turns_) {
    across_ = world_.now();
    start_message();
  } else {
    start_whole();
  }
}

// The driver changes its key, and sends messages of its own, before it begins with what it is
// handed: some of them are as long as a copy's.
void Crosser::begin_crossing() {
  const Crossing& crossing = *crossing_;
  if (!crossing.copies.empty()) {
    const CallId call = shared_.known[crossing.copies.front()].copy.call;
    crossing.early ? world_.oracle.reads(call) : world_.oracle.starts(call);
  }
  if (!crossing.copies.empty() && shared_.tamper_next) {
    tampered_ = std::exchange(shared_.tamper_next, std::nullopt);
  }
  if (CopyThreads::direction_of(id_) == Direction::to_host) return;
  if (channel_.key_bytes >= shared_.ours.cc.key_rotation_bytes) channel_.rotates = true;
  if (std::exchange(channel_.rotates, false)) {
    ++channel_.epoch;
    channel_.position = channel_.key_bytes = 0;
    ++world_.counters.rotations;
    world_.log("the channel of thread {} has a new key", id_);
    world_.oracle.rotates(id_);
  }
  if (crossing.copies.empty()) return;
  const ProgramCopy& first = shared_.known[crossing.copies.front()].copy;
  for (; channel_.driver_messages > 0; --channel_.driver_messages) {
    const uint64_t bytes = world_.random.chance(0.5) ? std::min(kMessageBytes, crossing.bytes)
                                                     : world_.random.between(1, 4096);
    const bool seen = by_turns_ && world_.random.chance(0.7);
    const bool taken = seen && ahead_->own_message(channel_, bytes);
    world_.log("the driver uses position {} of thread {}", channel_.position, id_);
    world_.oracle.own_message(id_, taken ? first.call : kNoCall);
    ++channel_.position;
  }
}

Duration Crosser::whole_time(const Crossing& crossing, Direction direction) const {
  const bool inward = direction == Direction::to_device;
  const Path& whole = inward ? shared_.ours.to_device : shared_.ours.to_host;
  Duration time = stock_copy_time(shared_.ours, whole, HostMemory::pinned, crossing.bytes);
  if (crossing.together && crossing.together->host_pieces() > 1) {
    time += memcpy_time(shared_.ours.host, crossing.bytes);
  }
  if (crossing.together && crossing.together->device_pieces() > 1) {
    time += from_us(shared_.ours.gpu.device_copy_cc_us) *
            static_cast<int64_t>(crossing.together->device_pieces());
  }
  for (const CopyId copy : crossing.copies) {
    const bool staged = shared_.copies.side_of(copy) == HostSide::at_turn && inward;
    if (staged)
      time += safe_read_time(shared_.ours.host, shared_.copies.call_of(copy).host.bytes) /
              (shared_.helpers() + 1);
  }
  return time;
}

void Crosser::start_whole() {
  const Crossing& crossing = *crossing_;
  const Direction direction = CopyThreads::direction_of(id_);
  for (const CopyId copy : crossing.copies) {
    const Known& known = shared_.known[copy];
    contents_.push_back(known.snapshot.empty() ? world_.memory.fingerprint(known.copy.host)
                                               : known.snapshot[0]);
    world_.log("thread {} carries copy {}{}", id_, known.copy.call, crossing.early ? " early" : "");
  }
  const Duration work = world_.crowded(whole_time(crossing, direction), shared_.threads_at_work());
  // The thread that carries, and its helpers as long as they seal.
  const auto helping = static_cast<int64_t>(shared_.helpers());
  world_.counters.workers_busy +=
      work + fast_aead_time(shared_.ours.host, crossing.bytes) * helping / (helping + 1);
  const Instant link = world_.device.transfer(
      direction, world_.now() + toll_time(shared_.path(direction), HostMemory::pinned),
      link_time(shared_.path(direction), crossing.bytes));
  world_.timeline.add({.track = Track::lane,
                       .index = id_,
                       .what = "carry",
                       .from = world_.now(),
                       .until = world_.now() + work});
  world_.events.add(std::max(world_.now() + work, link), EventKind::crossed, id_);
}

void Crosser::start_pads() {
  world_.log("thread {} pads {} positions", id_, crossing_->pads);
  const Duration toll = toll_time(shared_.path(Direction::to_device), HostMemory::pinned);
  world_.events.add(world_.now() + toll * static_cast<int64_t>(crossing_->pads), EventKind::crossed,
                    id_);
}

Range Crosser::next_part() const {
  const Crossing& crossing = *crossing_;
  const Range& host = shared_.copies.call_of(crossing.copies.front()).host;
  const uint64_t offset = sent_ * kMessageBytes;
  return {host.address + crossing.offset + offset,
          std::min(kMessageBytes, crossing.bytes - offset)};
}

// By turns: the driver is about to seal the next message.
void Crosser::start_message() {
  Speculator& speculator = ahead_->speculator();
  const Known& known = shared_.known[crossing_->copies.front()];
  const Range part = next_part();
  const uint64_t index = (part.address - known.copy.host.address) / kMessageBytes;
  content_ = known.snapshot.empty() ? world_.memory.fingerprint(part) : known.snapshot[1 + index];
  SeenMessage message{.key = channel_.key(), .iv = channel_.iv(), .piece = part};
  if (channel_.staged) message.piece.address = 0;
  if (!std::exchange(seen_, true)) speculator.handle_seen(message.key, message.iv);
  verdict_ = speculator.answer(message, world_.now());
  if (verdict_.kind == Verdict::Kind::compare) {
    message.same = ahead_->slot(verdict_.slot).content == content_;
    guard_debt_ += digest_time(world_.setup.platform.guard, part.bytes);
    verdict_ = speculator.answer(message, world_.now());
  }
  const bool waits = verdict_.kind == Verdict::Kind::wait;
  awaits_ = waits ? Awaits::message : Awaits::nothing;
  if (waits) return;
  ahead_->pump(shared_.crossings);  // what does not fit is wiped before anything is sealed
  const bool from_slot = verdict_.kind == Verdict::Kind::from_slot;
  const Duration alone = from_slot ? memcpy_time(shared_.ours.host, part.bytes)
                                   : fast_aead_time(shared_.ours.host, part.bytes);
  Duration work = alone / (shared_.helpers() + 1) +
                  message_time(shared_.ours.cc, shared_.path(Direction::to_device), part.bytes);
  work += std::exchange(guard_debt_, Duration{0});
  if (sent_ == 0) work += toll_time(shared_.path(Direction::to_device), HostMemory::pinned);
  world_.timeline.add({.track = Track::lane,
                       .index = id_,
                       .what = "publish",
                       .from = world_.now(),
                       .until = world_.now() + work});
  world_.events.add(world_.now() + world_.crowded(work, shared_.threads_at_work()), EventKind::sent,
                    id_);
}

void Crosser::sent() {
  using Kind = Verdict::Kind;
  const Known& known = shared_.known[crossing_->copies.front()];
  const Range part = next_part();
  const Verdict& verdict = verdict_;
  if (known.snapshot.empty() && world_.memory.fingerprint(part) != content_) {
    content_ = world_.memory.garbage();
  }
  Oracle::Sealed record{channel_.epoch, channel_.position, content_};
  const bool slot = verdict.kind == Kind::from_slot;
  if (slot) record = ahead_->slot(verdict.slot);
  if (!slot && verdict.slot != kNone) world_.oracle.sealed_instead(id_, verdict.slot);
  world_.log("thread {} exposes position {}: [{:#x}, +{}) of copy {}{}", id_, channel_.position,
             part.address, part.bytes, known.copy.call, slot ? ", from its slot" : "");
  world_.oracle.exposes(id_, channel_.position, &record);
  world_.oracle.delivers(known.copy.call, part, record.content);
  if (verdict.kind != Kind::drivers) {
    ahead_->speculator().handle_answered(channel_.iv(), slot, part.bytes, world_.now());
  }
  ++channel_.position;
  channel_.key_bytes += part.bytes;
  ++sent_;
  seen_ = false;
  across_ = world_.device.transfer(Direction::to_device, world_.now(),
                                   link_time(shared_.path(Direction::to_device), part.bytes));
  const bool more = sent_ * kMessageBytes < crossing_->bytes;
  if (tampered_) judge_bus(more);
  if (more && code_ == 0) {
    start_message();
  } else {
    world_.events.add(across_, EventKind::crossed, id_);
  }
}

// --- the driver's call returns

bool Crosser::crossed() {
  if (!crossing_->dropped) finish_whole();
  if (crossing_->early && code_ == 0 && !shared_.copies.may_land(id_)) {
    awaits_ = Awaits::landing;
    return false;
  }
  return end_crossing();
}

bool Crosser::end_crossing() {
  const bool over = !by_turns_ || ahead_->speculator().end_crossing(code_ == 0, world_.now());
  awaits_ = over ? Awaits::nothing : Awaits::end;
  if (!over) return false;
  const Crossing& crossing = *crossing_;
  shared_.copies.handle_crossed(id_, code_, endings);
  const bool lost = crossing.early && failed();  // while it waited
  const bool landed = crossing.last && !crossing.dropped && code_ == 0 && !lost;
  for (const CopyId copy : crossing.copies) {  // of several, each takes effect after the one before
    if (!landed) break;
    const CallId call = shared_.known[copy].copy.call;
    const bool inward = CopyThreads::direction_of(id_) == Direction::to_device;
    const bool now = inward || shared_.copies.side_of(copy) == HostSide::in_place;
    if (crossing.early || (now && is_behind_another(copy))) world_.oracle.starts(call);
    const bool is_there = !crossing.early || CopyThreads::direction_of(id_) == Direction::to_host;
    if (is_there) world_.oracle.completes(call);
  }
  ended = 0;
  if (code_ != 0) replace_context();
  return true;
}

bool Crosser::is_behind_another(CopyId copy) const {
  return copy != crossing_->copies.front() && !failed();
}

bool Crosser::failed() const {
  return shared_.copies.failure_of(shared_.copies.call_of(crossing_->copies.front()).context) != 0;
}

Crossing Crosser::release() {
  --shared_.crossings;
  return *std::exchange(crossing_, nullptr);
}

// A context of ours that has failed does nothing more: the thread gets another, with new keys.
void Crosser::replace_context() {
  for (const CopyId copy : crossing_->copies) {
    world_.oracle.fails(world_.device.context(shared_.known[copy].copy.stream));
  }
  if (CopyThreads::direction_of(id_) == Direction::to_host) return;
  ++channel_.epoch;
  channel_.position = channel_.key_bytes = 0;
  world_.oracle.rotates(id_);
}

void Crosser::finish_whole() {
  if (crossing_->pads > 0) {
    for (uint64_t i = 0; i < crossing_->pads; ++i) {
      ahead_->speculator().handle_seen(channel_.key(), channel_.iv());
      world_.oracle.exposes(id_, channel_.position++, nullptr);
    }
  } else if (!by_turns_ && CopyThreads::direction_of(id_) == Direction::to_device) {
    deliver_to_device();
  } else if (!by_turns_) {
    deliver_to_host();
  }
}

void Crosser::deliver_to_device() {
  const Crossing& crossing = *crossing_;
  const uint32_t messages = message_count(crossing.bytes);
  for (uint32_t i = 0; i < messages; ++i) {
    const Oracle::Sealed record{channel_.epoch, channel_.position, contents_[0]};
    world_.oracle.exposes(id_, channel_.position++, &record);
  }
  channel_.key_bytes += crossing.bytes;
  if (tampered_) judge_bus(messages > 1);
  if (code_ != 0) return;
  for (size_t i = 0; i < crossing.copies.size(); ++i) {
    const Known& known = shared_.known[crossing.copies[i]];
    uint64_t content = contents_[i];
    const bool in_place = shared_.copies.side_of(crossing.copies[i]) == HostSide::in_place;
    const bool changed = world_.memory.fingerprint(known.copy.host) != content;
    if (in_place && changed) content = world_.memory.garbage();
    contents_[i] = content;
    if (!crossing.early) world_.oracle.delivers(known.copy.call, known.copy.host, content);
  }
}

void Crosser::delivered_early() {
  const ProgramCopy& copy = shared_.known[crossing_->copies.front()].copy;
  world_.oracle.delivers(copy.call, copy.host, contents_.front());
  world_.oracle.completes(copy.call);
}

// What did not verify is there nevertheless, until somebody wipes it.
void Crosser::deliver_to_host() {
  if (tampered_) {
    ++world_.counters.faults;
    code_ = kForged;
    world_.error = "a record did not verify: the context is lost";
  }
  for (const CopyId copy : crossing_->copies) {
    const ProgramCopy& asked = shared_.known[copy].copy;
    if (crossing_->early || shared_.copies.side_of(copy) != HostSide::in_place) continue;
    const bool verified =
        code_ == 0 && shared_.copies.failure_of(shared_.copies.call_of(copy).context) == 0;
    const bool dropped = crossing_->dropped;
    world_.cpu_writes(asked.host);
    world_.memory.write(asked.host);
    world_.oracle.carried_to_host(asked.call, asked.host,
                                  verified || !world_.setup.rules.deliver_after_failure);
    if (verified && !dropped) world_.oracle.opened(asked.call);
  }
}

// What the bus did to a message, if the device can tell.
void Crosser::judge_bus(bool more) {
  using Kind = ScriptedFault::Kind;
  switch (*std::exchange(tampered_, std::nullopt)) {
    case Kind::flip:
      return reject("that was changed");
    case Kind::drop:
      return reject(more ? "in place of a lost one" : "that never came");
    case Kind::repeat:
      return reject("for the second time");
    case Kind::swap:
      if (more) return reject("before its turn");
      return;  // what was to change places with it has none
    default:
      return;
  }
}

void Crosser::reject(const char* which) {
  ++world_.counters.faults;
  code_ = kForged;
  world_.error = fmt::format("the device rejected a record {}: the context is lost", which);
}

}  // namespace sealane::sim
