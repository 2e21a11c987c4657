// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/runtime.h"

#include <algorithm>
#include <utility>

#include "platform/cost.h"
#include "sim/patience.h"

namespace sealane::sim {
namespace {

constexpr Duration kCall{1'000};  // what interception and bookkeeping cost the caller
constexpr Duration kStep{500};    // a word in the stream
constexpr Duration kPoll{2'000};  // until a copy thread sees that the device is done
constexpr uint64_t kSplitBytesMin = 96_KiB;
constexpr Duration kFailing{2'000'000};  // until the driver has failed a context

CopiesOptions copies_options(const Setup& setup) {
  CopiesOptions options;
  options.rules = setup.rules;
  options.async = setup.policy.async;
  options.bulk_bytes_min = setup.policy.bulk_bytes_min;
  if (setup.policy.speculates()) {
    options.threads.bulk = setup.policy.by_cost ? setup.bulk_threads : 1;
  }
  if (setup.policy.coalesce) {
    CrossingCosts costs;
    costs.toll = from_us(setup.platform.to_device.cc.toll_us);
    costs.scatter = from_us(setup.platform.gpu.device_copy_cc_us);
    costs.copy_ns_per_byte = 1 / setup.platform.host.memcpy_gb_per_s;
    options.costs = costs;
  }
  return options;
}

}  // namespace

Platform with_engine(const Platform& platform, const Policy& policy, uint32_t helpers) {
  Platform ours = platform;
  if (!policy.fast_engine) return ours;
  const uint64_t cores = std::min<uint64_t>(helpers + 1, sealing_cores_max(platform.host));
  const double rate =
      platform.host.fast_aead_gb_per_s * static_cast<double>(policy.parallel ? cores : 1);
  for (SealedPath* path : {&ours.to_device.cc, &ours.to_host.cc}) {
    path->stock_aead_gb_per_s = std::max(path->stock_aead_gb_per_s, rate);
    path->stock_aead_cold_gb_per_s = std::max(path->stock_aead_cold_gb_per_s, rate);
  }
  return ours;
}

Runtime::Runtime(World& world, Threads& threads)
    : world_(world),
      threads_(threads),
      ours_(with_engine(world.setup.platform, world.setup.policy, workers_for(world.setup))),
      workers_(workers_for(world.setup)),
      copies_(copies_options(world.setup)) {}

// --- 1. the program's call

CopyCall Runtime::call_of(const ProgramCopy& copy) const {
  const auto in = [&](const std::vector<Range>& ranges) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const Range& range) { return range.overlaps(copy.host); });
  };
  CopyCall call;
  call.direction = copy.direction;
  call.stream = copy.stream;
  call.context = world_.device.context(copy.stream);
  call.device_address = copy.device;
  call.host = copy.host;
  call.legacy = world_.device.legacy(copy.stream);
  call.unseen = in(mapped_);
  if (copy.memory == MemoryKind::pinned) {
    call.memory = in(registered_) ? HostKind::registered : HostKind::pinned;
  }
  return call;
}

bool Runtime::open_thread(CopyThreadId thread) {
  if (crossers_.size() >= world_.setup.contexts_max) {
    copies_.handle_thread(thread, false);
    return false;
  }
  Crosser& made = crossers_[thread];
  made.channel.staged = world_.random.chance(world_.setup.staged);
  Speculation* door = nullptr;
  if (CopyThreads::is_bulk(thread)) {
    made.ahead = std::make_unique<SealCrew>(world_, slot_memory_, thread,
                                            copies_.options().threads.bulk, workers_);
    door = &made.ahead->speculator();
    for (const auto& [address, known] : allocations_) {
      made.ahead->allocated(known.first, known.second);
    }
  }
  copies_.handle_thread(thread, true, door);
  if (CopyThreads::direction_of(thread) == Direction::to_device) to_device_.push_back(thread);
  return true;
}

std::optional<Duration> Runtime::copies(std::span<const ProgramCopy> asked) {
  std::vector<CopyCall> calls;
  Duration cost = kCall;
  for (const ProgramCopy& copy : asked) {
    if (copy.sync) return std::nullopt;
    calls.push_back(call_of(copy));
    while (const auto missing = copies_.missing_thread(calls.back())) open_thread(*missing);
    const bool snapshot = calls.back().memory == HostKind::pageable;
    if (copy.direction != Direction::to_device || !snapshot) continue;
    for (auto& [id, crosser] : crossers_) {
      if (crosser.ahead) cost += crosser.ahead->check_guards(copy.host);
    }
  }
  copies_.handle_copies(calls, plan_, world_.now());
  if (plan_.verdict != CopyVerdict::carried) return std::nullopt;
  if (asked.front().call == kNoCall) return cost;  // into a graph, or so it should
  for (size_t i = 0; i < asked.size(); ++i) known_[plan_.copies[i]] = {asked[i], {}};
  for (; plan_.done < plan_.steps.size(); ++plan_.done) {
    const bool refused = world_.random.chance(world_.setup.faults.refused_step);
    if (!refused && perform(plan_.steps[plan_.done], cost)) continue;
    world_.log("a step of a copy could not be done");
    copies_.handle_refused(plan_, world_.now());
    for (const CopyId id : plan_.copies) {
      if (!copies_.under_way(id)) known_.erase(id);
    }
    return std::nullopt;
  }
  copies_.handle_put(plan_);
  pump();
  return cost;
}

bool Runtime::perform(const CallStep& step, Duration& cost) {
  if (const auto* snapshot = std::get_if<TakeSnapshot>(&step)) {
    const Range& host = copies_.call_of(snapshot->copy).host;
    const Duration alone = memcpy_time(ours_.host, host.bytes);
    cost += host.bytes < kSplitBytesMin ? alone : alone / (helpers() + 1);
    take_snapshot(snapshot->copy);
  } else if (const auto* record = std::get_if<RecordEvent>(&step)) {
    const auto stream = static_cast<uint32_t>(record->stream);
    world_.device.submit({.kind = ItemKind::mark, .stream = stream});
    const uint64_t count = world_.device.submitted(stream);
    marks_.push_back({stream, count, record->event});
    world_.device.watch(stream, count, kPoll);
    cost += kStep;
  } else {
    const auto& gate = std::get<PutGate>(step);
    world_.device.submit({.kind = ItemKind::word,
                          .stream = static_cast<uint32_t>(gate.stream),
                          .word = gate.stream * 64 + gate.thread,
                          .value = gate.value});
    cost += kStep;
  }
  return true;
}

std::vector<uint64_t> Runtime::contents_of(const Range& host) const {
  std::vector<uint64_t> contents;
  for (uint32_t i = 0; i < message_count(host.bytes); ++i) {
    contents.push_back(world_.memory.fingerprint(message_range(host, i)));
  }
  return contents;
}

void Runtime::take_snapshot(CopyId id) {
  const Range& host = copies_.call_of(id).host;
  Known& known = known_[id];
  known.snapshot = {world_.memory.fingerprint(host)};
  const std::vector<uint64_t> parts = contents_of(host);
  known.snapshot.insert(known.snapshot.end(), parts.begin(), parts.end());
  for (auto& [thread, crosser] : crossers_) {
    if (crosser.ahead && host.bytes >= copies_.options().bulk_bytes_min) {
      crosser.ahead->keep(id, host, parts);
    }
  }
}

void Runtime::other_work(uint32_t stream) {
  copies_.handle_work(stream, world_.device.legacy(stream));
}

Duration Runtime::write(const Range& range) {
  Duration cost{0};
  for (auto& [id, crosser] : crossers_) {
    if (crosser.ahead) cost += crosser.ahead->write(range);
  }
  return cost;
}

// Only what our threads take away: without them too the program's threads share the cores.
Duration Runtime::shared(Duration think) const {
  const uint64_t theirs = world_.awake();
  const uint64_t before = std::max(theirs, world_.setup.platform.host.cores);
  const uint64_t with_us = std::max(theirs + threads_of_ours(), before);
  return think * static_cast<int64_t>(with_us) / static_cast<int64_t>(before);
}

// Some of what the program pins is its own memory registered, or can be reached by the device.
void Runtime::allocated(const Range& range, MemoryKind memory) {
  const auto overlaps = [&](const Range& other) { return other.overlaps(range); };
  std::erase_if(mapped_, overlaps);
  std::erase_if(registered_, overlaps);
  const bool pinned = memory == MemoryKind::pinned;
  const bool mapped = pinned && world_.random.chance(world_.setup.mapped);
  const bool registered = pinned && world_.random.chance(world_.setup.registered);
  if (mapped) mapped_.push_back(range);
  if (registered) registered_.push_back(range);
  if (registered || (mapped && world_.setup.rules.unseen_writer)) return;
  allocations_[range.address] = {range, memory != MemoryKind::managed};
  for (auto& [id, crosser] : crossers_) {
    if (crosser.ahead) crosser.ahead->allocated(range, memory != MemoryKind::managed);
  }
}

void Runtime::freed(const Range& range) {
  allocations_.erase(range.address);
  copies_.handle_freed(range, world_.now());
}

bool Runtime::mapped(const Range& range) const {
  return std::any_of(mapped_.begin(), mapped_.end(),
                     [&](const Range& other) { return other.overlaps(range); });
}

// --- 2. copy threads

uint32_t Runtime::crossings() const {
  uint32_t busy = 0;
  for (const auto& [id, crosser] : crossers_) busy += crosser.crossing != nullptr ? 1 : 0;
  return busy;
}

uint64_t Runtime::threads_of_ours() const {
  uint64_t running = crossings();
  for (const auto& [id, crosser] : crossers_) {
    if (crosser.ahead && crosser.ahead->sealing() > 0) return running + workers_;
  }
  return running;
}

const SealedPath& Runtime::path(Direction direction) const {
  return direction == Direction::to_device ? ours_.to_device.cc : ours_.to_host.cc;
}

void Runtime::pump() {
  for (auto& [id, crosser] : crossers_) {
    if (crosser.awaits == Crosser::Awaits::message) {
      start_message(id, crosser);
    } else if (crosser.awaits == Crosser::Awaits::end) {
      end_crossing(id, crosser);
    } else if (crosser.crossing == nullptr) {
      start(id, crosser);
    }
    if (crosser.ahead) crosser.ahead->pump(crossings());
  }
}

void Runtime::start(CopyThreadId id, Crosser& crosser) {
  copies_.at_turn(id, at_turn_);
  for (const CopyId copy : at_turn_) {
    if (!crosser.ahead) break;
    crosser.guard_debt += crosser.ahead->check_guards(copies_.call_of(copy).host);
  }
  crosser.crossing = copies_.take(id, world_.now());
  if (crosser.crossing == nullptr) return;
  const bool several = crosser.crossing->copies.size() > 1;
  if (several && world_.random.chance(world_.setup.faults.apart)) {
    crosser.crossing = copies_.take_alone(id);
  }
  crosser.code = 0;
  crosser.tampered.reset();
  crosser.contents.clear();
  crosser.sent = 0;
  crosser.seen = false;
  const Speculator* const ahead = crosser.ahead ? &crosser.ahead->speculator() : nullptr;
  crosser.by_turns = ahead != nullptr && ahead->crossing() && !ahead->stopped();
  if (crosser.crossing->dropped) {
    world_.events.add(world_.now(), EventKind::crossed, id);
    return;
  }
  begin_crossing(id, crosser);
  if (crosser.crossing->pads > 0) {
    start_pads(id, crosser);
  } else if (crosser.by_turns) {
    crosser.across = world_.now();
    start_message(id, crosser);
  } else {
    start_whole(id, crosser);
  }
}

// The driver changes its key, and sends messages of its own, before it begins with what it is
// handed: some of them are as long as a copy's.
void Runtime::begin_crossing(CopyThreadId id, Crosser& crosser) {
  const Crossing& crossing = *crosser.crossing;
  if (!crossing.copies.empty()) world_.oracle.starts(known_[crossing.copies.front()].copy.call);
  if (!crossing.copies.empty() && tamper_next_) {
    crosser.tampered = std::exchange(tamper_next_, std::nullopt);
  }
  if (CopyThreads::direction_of(id) == Direction::to_host) return;
  Channel& channel = crosser.channel;
  if (channel.key_bytes >= ours_.cc.key_rotation_bytes) channel.rotates = true;
  if (std::exchange(channel.rotates, false)) {
    ++channel.epoch;
    channel.position = channel.key_bytes = 0;
    ++world_.counters.rotations;
    world_.log("the channel of thread {} has a new key", id);
    world_.oracle.rotates(id);
  }
  if (crossing.copies.empty()) return;
  const ProgramCopy& first = known_[crossing.copies.front()].copy;
  for (; channel.driver_messages > 0; --channel.driver_messages) {
    const uint64_t bytes = world_.random.chance(0.5) ? std::min(kMessageBytes, crossing.bytes)
                                                     : world_.random.between(1, 4096);
    const bool seen = crosser.by_turns && world_.random.chance(0.7);
    const bool taken = seen && crosser.ahead->own_message(channel, bytes);
    world_.log("the driver uses position {} of thread {}", channel.position, id);
    world_.oracle.own_message(id, taken ? first.call : kNoCall);
    ++channel.position;
  }
}

Duration Runtime::whole_time(const Crossing& crossing, Direction direction) {
  const bool inward = direction == Direction::to_device;
  const Path& whole = inward ? ours_.to_device : ours_.to_host;
  Duration time = stock_copy_time(ours_, whole, HostMemory::pinned, crossing.bytes);
  if (crossing.together && crossing.together->host_pieces() > 1) {
    time += memcpy_time(ours_.host, crossing.bytes);
  }
  if (crossing.together && crossing.together->device_pieces() > 1) {
    time += from_us(ours_.gpu.device_copy_cc_us) *
            static_cast<int64_t>(crossing.together->device_pieces());
  }
  for (const CopyId copy : crossing.copies) {
    const bool staged = copies_.side_of(copy) == HostSide::at_turn && inward;
    if (staged)
      time += safe_read_time(ours_.host, copies_.call_of(copy).host.bytes) / (helpers() + 1);
  }
  return time;
}

void Runtime::start_whole(CopyThreadId id, Crosser& crosser) {
  const Crossing& crossing = *crosser.crossing;
  const Direction direction = CopyThreads::direction_of(id);
  for (const CopyId copy : crossing.copies) {
    const Known& known = known_[copy];
    crosser.contents.push_back(known.snapshot.empty() ? world_.memory.fingerprint(known.copy.host)
                                                      : known.snapshot[0]);
    world_.log("thread {} carries copy {}", id, known.copy.call);
  }
  const Duration work = world_.crowded(whole_time(crossing, direction), threads_of_ours());
  // The thread that carries, and its helpers as long as they seal.
  const auto helping = static_cast<int64_t>(helpers());
  world_.counters.workers_busy +=
      work + fast_aead_time(ours_.host, crossing.bytes) * helping / (helping + 1);
  const Instant link = world_.device.transfer(
      direction, world_.now() + toll_time(path(direction), HostMemory::pinned),
      link_time(path(direction), crossing.bytes));
  world_.timeline.add({.track = Track::lane,
                       .index = id,
                       .what = "carry",
                       .from = world_.now(),
                       .until = world_.now() + work});
  world_.events.add(std::max(world_.now() + work, link), EventKind::crossed, id);
}

void Runtime::start_pads(CopyThreadId id, Crosser& crosser) {
  world_.log("thread {} pads {} positions", id, crosser.crossing->pads);
  const Duration toll = toll_time(path(Direction::to_device), HostMemory::pinned);
  world_.events.add(world_.now() + toll * static_cast<int64_t>(crosser.crossing->pads),
                    EventKind::crossed, id);
}

Range Runtime::next_part(const Crosser& crosser) const {
  const Crossing& crossing = *crosser.crossing;
  const Range& host = copies_.call_of(crossing.copies.front()).host;
  const uint64_t offset = crosser.sent * kMessageBytes;
  return {host.address + crossing.offset + offset,
          std::min(kMessageBytes, crossing.bytes - offset)};
}

// By turns: the driver is about to seal the next message.
void Runtime::start_message(CopyThreadId id, Crosser& crosser) {
  Speculator& speculator = crosser.ahead->speculator();
  const Channel& channel = crosser.channel;
  const Known& known = known_[crosser.crossing->copies.front()];
  const Range part = next_part(crosser);
  const uint64_t index = (part.address - known.copy.host.address) / kMessageBytes;
  crosser.content =
      known.snapshot.empty() ? world_.memory.fingerprint(part) : known.snapshot[1 + index];
  SeenMessage message{.key = channel.key(), .iv = channel.iv(), .piece = part};
  if (channel.staged) message.piece.address = 0;
  if (!std::exchange(crosser.seen, true)) speculator.handle_seen(message.key, message.iv);
  crosser.verdict = speculator.answer(message, world_.now());
  if (crosser.verdict.kind == Verdict::Kind::compare) {
    message.same = crosser.ahead->slot(crosser.verdict.slot).content == crosser.content;
    crosser.guard_debt += digest_time(world_.setup.platform.guard, part.bytes);
    crosser.verdict = speculator.answer(message, world_.now());
  }
  const bool waits = crosser.verdict.kind == Verdict::Kind::wait;
  crosser.awaits = waits ? Crosser::Awaits::message : Crosser::Awaits::nothing;
  if (waits) return;
  crosser.ahead->pump(crossings());  // what does not fit is wiped before anything is sealed
  const bool from_slot = crosser.verdict.kind == Verdict::Kind::from_slot;
  const Duration alone =
      from_slot ? memcpy_time(ours_.host, part.bytes) : fast_aead_time(ours_.host, part.bytes);
  Duration work =
      alone / (helpers() + 1) + message_time(ours_.cc, path(Direction::to_device), part.bytes);
  work += std::exchange(crosser.guard_debt, Duration{0});
  if (crosser.sent == 0) work += toll_time(path(Direction::to_device), HostMemory::pinned);
  world_.timeline.add({.track = Track::lane,
                       .index = id,
                       .what = "publish",
                       .from = world_.now(),
                       .until = world_.now() + work});
  world_.events.add(world_.now() + world_.crowded(work, threads_of_ours()), EventKind::sent, id);
}

void Runtime::sent(uint32_t id) {
  using Kind = Verdict::Kind;
  Crosser& crosser = crossers_[id];
  const Known& known = known_[crosser.crossing->copies.front()];
  const Range part = next_part(crosser);
  Channel& channel = crosser.channel;
  const Verdict& verdict = crosser.verdict;
  if (known.snapshot.empty() && world_.memory.fingerprint(part) != crosser.content) {
    crosser.content = world_.memory.garbage();
  }
  Oracle::Sealed record{channel.epoch, channel.position, crosser.content};
  const bool slot = verdict.kind == Kind::from_slot;
  if (slot) record = crosser.ahead->slot(verdict.slot);
  if (!slot && verdict.slot != kNone) world_.oracle.sealed_instead(id, verdict.slot);
  world_.log("thread {} exposes position {}: [{:#x}, +{}) of copy {}{}", id, channel.position,
             part.address, part.bytes, known.copy.call, slot ? ", from its slot" : "");
  world_.oracle.exposes(id, channel.position, &record);
  world_.oracle.delivers(known.copy.call, part, record.content);
  if (verdict.kind != Kind::drivers) {
    crosser.ahead->speculator().handle_answered(channel.iv(), slot, part.bytes, world_.now());
  }
  ++channel.position;
  channel.key_bytes += part.bytes;
  ++crosser.sent;
  crosser.seen = false;
  crosser.across = world_.device.transfer(Direction::to_device, world_.now(),
                                          link_time(path(Direction::to_device), part.bytes));
  const bool more = crosser.sent * kMessageBytes < crosser.crossing->bytes;
  if (crosser.tampered) judge_bus(crosser, more);
  if (more && crosser.code == 0) {
    start_message(id, crosser);
  } else {
    world_.events.add(crosser.across, EventKind::crossed, id);
  }
}

// --- 3. the driver's call returns

void Runtime::crossed(uint32_t id) {
  Crosser& crosser = crossers_[id];
  if (!crosser.crossing->dropped) finish_whole(id, crosser);
  end_crossing(id, crosser);
}

void Runtime::end_crossing(CopyThreadId id, Crosser& crosser) {
  const bool over = !crosser.by_turns ||
                    crosser.ahead->speculator().end_crossing(crosser.code == 0, world_.now());
  crosser.awaits = over ? Crosser::Awaits::nothing : Crosser::Awaits::end;
  if (!over) return;
  const Crossing& crossing = *crosser.crossing;
  copies_.handle_crossed(id, crosser.code, crosser.endings);
  const bool landed = crossing.last && !crossing.dropped && crosser.code == 0;
  for (const CopyId copy : crossing.copies) {  // of several, each takes effect after the one before
    if (!landed) break;
    if (copy != crossing.copies.front()) world_.oracle.starts(known_[copy].copy.call);
    world_.oracle.completes(known_[copy].copy.call);
  }
  crosser.ended = 0;
  if (crosser.code != 0) replace_context(id, crosser);
  next_ending(id, crosser);
}

// A context of ours that has failed does nothing more: the thread gets another, with new keys.
void Runtime::replace_context(CopyThreadId id, Crosser& crosser) {
  for (const CopyId copy : crosser.crossing->copies) {
    world_.oracle.fails(world_.device.context(known_[copy].copy.stream));
  }
  if (CopyThreads::direction_of(id) == Direction::to_host) return;
  ++crosser.channel.epoch;
  crosser.channel.position = crosser.channel.key_bytes = 0;
  world_.oracle.rotates(id);
}

void Runtime::finish_whole(CopyThreadId id, Crosser& crosser) {
  Channel& channel = crosser.channel;
  if (crosser.crossing->pads > 0) {
    for (uint64_t i = 0; i < crosser.crossing->pads; ++i) {
      crosser.ahead->speculator().handle_seen(channel.key(), channel.iv());
      world_.oracle.exposes(id, channel.position++, nullptr);
    }
  } else if (!crosser.by_turns && CopyThreads::direction_of(id) == Direction::to_device) {
    deliver_to_device(id, crosser);
  } else if (!crosser.by_turns) {
    deliver_to_host(crosser);
  }
}

void Runtime::deliver_to_device(CopyThreadId id, Crosser& crosser) {
  Channel& channel = crosser.channel;
  const Crossing& crossing = *crosser.crossing;
  const uint32_t messages = message_count(crossing.bytes);
  for (uint32_t i = 0; i < messages; ++i) {
    const Oracle::Sealed record{channel.epoch, channel.position, crosser.contents[0]};
    world_.oracle.exposes(id, channel.position++, &record);
  }
  channel.key_bytes += crossing.bytes;
  if (crosser.tampered) judge_bus(crosser, messages > 1);
  if (crosser.code != 0) return;
  for (size_t i = 0; i < crossing.copies.size(); ++i) {
    const Known& known = known_[crossing.copies[i]];
    uint64_t content = crosser.contents[i];
    const bool in_place = copies_.side_of(crossing.copies[i]) == HostSide::in_place;
    const bool changed = world_.memory.fingerprint(known.copy.host) != content;
    if (in_place && changed) content = world_.memory.garbage();
    world_.oracle.delivers(known.copy.call, known.copy.host, content);
  }
}

// What did not verify is there nevertheless, until somebody wipes it.
void Runtime::deliver_to_host(Crosser& crosser) {
  if (crosser.tampered) {
    ++world_.counters.faults;
    crosser.code = kForged;
    world_.error = "a record did not verify: the context is lost";
  }
  for (const CopyId copy : crosser.crossing->copies) {
    const ProgramCopy& asked = known_[copy].copy;
    if (copies_.side_of(copy) != HostSide::in_place) continue;
    const bool verified =
        crosser.code == 0 && copies_.failure_of(copies_.call_of(copy).context) == 0;
    const bool dropped = crosser.crossing->dropped;
    write(asked.host);
    world_.memory.write(asked.host);
    world_.oracle.carried_to_host(asked.call, asked.host,
                                  verified || !world_.setup.rules.deliver_after_failure);
    if (verified && !dropped) world_.oracle.opened(asked.call);
  }
}

// What the bus did to a message, if the device can tell.
void Runtime::judge_bus(Crosser& crosser, bool more) {
  using Kind = ScriptedFault::Kind;
  switch (*std::exchange(crosser.tampered, std::nullopt)) {
    case Kind::flip:
      return reject(crosser, "that was changed");
    case Kind::drop:
      return reject(crosser, more ? "in place of a lost one" : "that never came");
    case Kind::repeat:
      return reject(crosser, "for the second time");
    case Kind::swap:
      if (more) return reject(crosser, "before its turn");
      return;  // what was to change places with it has none
    default:
      return;
  }
}

void Runtime::reject(Crosser& crosser, const char* which) {
  ++world_.counters.faults;
  crosser.code = kForged;
  world_.error = fmt::format("the device rejected a record {}: the context is lost", which);
}

void Runtime::next_ending(CopyThreadId id, Crosser& crosser) {
  while (crosser.ended < crosser.endings.size()) {
    const Duration time = perform(crosser.endings[crosser.ended]);
    ++crosser.ended;
    if (time == Duration{0}) continue;
    world_.events.add(world_.now() + time, EventKind::ending, id);
    return;
  }
  for (const Ending& ending : crosser.endings) {
    if (const auto* deliver = std::get_if<Deliver>(&ending)) delivered(deliver->copy);
  }
  copies_.handle_delivered(id, crosser.endings);
  for (const Ending& ending : crosser.endings) {
    perform(ending);
    finish(ending);
  }
  const Crossing crossing = *crosser.crossing;
  crosser.crossing = nullptr;
  copies_.handle_ended(id, world_.now());
  for (const CopyId copy : crossing.copies) {
    if (copies_.under_way(copy)) continue;
    known_.erase(copy);
    for (auto& [other, each] : crossers_) {
      if (each.ahead) each.ahead->forget(copy);
    }
  }
}

void Runtime::ending_done(uint32_t id) {
  Crosser& crosser = crossers_[id];
  finish(crosser.endings[crosser.ended - 1]);
  next_ending(id, crosser);
}

// What takes its time, when that is over.
void Runtime::finish(const Ending& ending) {
  const auto* failed = std::get_if<FailContext>(&ending);
  if (failed == nullptr) return;
  const auto context = static_cast<uint32_t>(failed->context);
  world_.oracle.stops(context);
  world_.device.fail(context);
  world_.log("context {} has failed", context);
  threads_.wake_all(context);
}

void Runtime::delivered(CopyId copy) {
  const ProgramCopy& asked = known_[copy].copy;
  const bool verified = copies_.failure_of(copies_.call_of(copy).context) == 0;
  write(asked.host);
  world_.memory.write(asked.host);
  world_.oracle.carried_to_host(asked.call, asked.host,
                                verified || !world_.setup.rules.deliver_after_failure);
  if (verified) world_.oracle.opened(asked.call);
}

// How long it takes; 0: it is done.
Duration Runtime::perform(const Ending& ending) {
  if (const auto* deliver = std::get_if<Deliver>(&ending)) {
    return std::max(
        Duration{1},
        memcpy_time(ours_.host, copies_.call_of(deliver->copy).host.bytes) / (helpers() + 1));
  }
  if (const auto* wipe = std::get_if<Wipe>(&ending)) {
    const Range& host = known_[wipe->copy].copy.host;
    world_.memory.write(host);
    world_.oracle.wiped(host);
  } else if (std::holds_alternative<FailContext>(ending)) {
    world_.log("{}", *world_.error);
    return kFailing;
  } else if (const auto* gate = std::get_if<OpenGate>(&ending)) {
    world_.oracle.gate_opens();
    world_.device.set_word(gate->stream * 64 + gate->thread, gate->value);
  }
  return Duration{0};
}

void Runtime::reached(uint32_t stream, uint64_t count) {
  const uint32_t context = world_.device.context(stream);
  const ErrorCode code = world_.device.failed(context) ? kCrashed : 0;
  std::erase_if(marks_, [&](const Mark& mark) {
    if (mark.stream != stream || mark.count > count) return false;
    if (code != 0) world_.oracle.fails(context);
    copies_.handle_reached(mark.event, code);
    return true;
  });
  while (copies_.forgotten()) {
  }
}

void Runtime::worker_done(uint32_t lane, uint64_t job) { crossers_[lane].ahead->worker_done(job); }

// --- faults, figures

void Runtime::stall_worker() {
  for (auto& [id, crosser] : crossers_) {
    if (crosser.ahead) crosser.ahead->stall_next();
  }
}

void Runtime::stall_workers(Duration stall) {
  for (auto& [id, crosser] : crossers_) {
    if (crosser.ahead) crosser.ahead->stall(stall);
  }
}

std::optional<Range> Runtime::some_planned(uint64_t pick) const {
  for (const auto& [id, crosser] : crossers_) {
    if (!crosser.ahead) continue;
    if (auto planned = crosser.ahead->some_planned(pick)) return planned;
  }
  return std::nullopt;
}

void Runtime::count(Counters& counters) const {
  for (const auto& [id, crosser] : crossers_) {
    if (crosser.ahead) crosser.ahead->count(counters);
  }
  counters.coalesced += copies_.stats().together;
}

}  // namespace sealane::sim
