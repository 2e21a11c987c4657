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
constexpr Duration kPoll{2'000};  // until a copy thread sees that the device is done
constexpr uint64_t kSplitBytesMin = 96_KiB;
constexpr Duration kFailing{2'000'000};  // until the driver has failed a context

CopiesOptions copies_options(const Setup& setup) {
  CopiesOptions options;
  options.rules = setup.rules;
  options.async = setup.policy.async;
  if (setup.policy.foresight != Foresight::paper) options.early_bytes_max = kEarlyBytesMax;
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

bool any_overlaps(const std::vector<Range>& ranges, const Range& range) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& other) { return other.overlaps(range); });
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
      carrying_{
          .world = world,
          .ours = with_engine(world.setup.platform, world.setup.policy, workers_for(world.setup)),
          .workers = workers_for(world.setup),
          .copies = Copies(copies_options(world.setup))} {}

// --- 1. the program's call

CopyCall Runtime::call_of(const ProgramCopy& copy) const {
  CopyCall call;
  call.direction = copy.direction;
  call.stream = copy.stream;
  call.context = world_.device.context(copy.stream);
  call.device_address = copy.device;
  call.host = copy.host;
  call.legacy = world_.device.legacy(copy.stream);
  call.unseen = mapped(copy.host);
  if (copy.memory == MemoryKind::pinned) {
    call.memory = any_overlaps(registered_, copy.host) ? HostKind::registered : HostKind::pinned;
  }
  return call;
}

void Runtime::open_thread(CopyThreadId thread) {
  if (crossers_.size() >= world_.setup.contexts_max) {
    copies_.handle_thread(thread, false);
    return;
  }
  std::unique_ptr<SealCrew> crew;
  Speculation* door = nullptr;
  if (CopyThreads::is_bulk(thread)) {
    crew = std::make_unique<SealCrew>(world_, carrying_.slots, thread,
                                      copies_.options().threads.bulk, carrying_.workers);
    door = &crew->speculator();
    for (const auto& [address, known] : allocations_) crew->allocated(known.first, known.second);
  }
  crossers_.try_emplace(thread, carrying_, thread, std::move(crew));
  copies_.handle_thread(thread, true, door);
  if (CopyThreads::direction_of(thread) == Direction::to_device) to_device_.push_back(thread);
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
    each_crew([&](SealCrew& crew) { cost += crew.check_guards(copy.host); });
  }
  copies_.handle_copies(calls, plan_, world_.now());
  if (plan_.verdict != CopyVerdict::carried) return std::nullopt;
  if (asked.front().call == kNoCall) return cost;  // into a graph, or so it should
  for (size_t i = 0; i < asked.size(); ++i) carrying_.known[plan_.copies[i]] = {asked[i], {}};
  for (; plan_.done < plan_.steps.size(); ++plan_.done) {
    if (!world_.random.chance(world_.setup.faults.refused_step)) {
      cost += perform(plan_.steps[plan_.done]);
      continue;
    }
    world_.log("a step of a copy could not be done");
    copies_.handle_refused(plan_, world_.now());
    for (const CopyId id : plan_.copies) {
      if (!copies_.under_way(id)) carrying_.known.erase(id);
    }
    return std::nullopt;
  }
  // Nobody carries anything before the caller has done all of that.
  putting_.emplace(calls_, plan_);
  world_.events.add(world_.now() + cost, EventKind::put, 0, calls_++);
  return cost;
}

void Runtime::put(uint64_t call) { copies_.handle_put(putting_.extract(call).mapped()); }

// What it costs the caller: our calls of the driver take as long as the program's own.
Duration Runtime::perform(const CallStep& step) {
  const Gpu& gpu = carrying_.ours.gpu;
  if (const auto* snapshot = std::get_if<TakeSnapshot>(&step)) {
    const Range& host = copies_.call_of(snapshot->copy).host;
    const Duration alone = memcpy_time(carrying_.ours.host, host.bytes);
    take_snapshot(snapshot->copy);
    return host.bytes < kSplitBytesMin ? alone : alone / (carrying_.helpers() + 1);
  }
  if (const auto* record = std::get_if<RecordEvent>(&step)) {
    const auto stream = static_cast<uint32_t>(record->stream);
    world_.device.submit({.kind = ItemKind::mark, .stream = stream});
    const uint64_t count = world_.device.submitted(stream);
    marks_.push_back({stream, count, record->event});
    world_.device.watch(stream, count, kPoll);
    return call_time(gpu, ItemKind::record, true);
  }
  const auto& gate = std::get<PutGate>(step);
  world_.device.submit({.kind = ItemKind::word,
                        .stream = static_cast<uint32_t>(gate.stream),
                        .word = gate.stream * 64 + gate.thread,
                        .value = gate.value});
  return call_time(gpu, ItemKind::word, true);
}

void Runtime::take_snapshot(CopyId id) {
  const Range& host = copies_.call_of(id).host;
  std::vector<uint64_t> parts;
  for (uint32_t i = 0; i < message_count(host.bytes); ++i) {
    parts.push_back(world_.memory.fingerprint(message_range(host, i)));
  }
  if (host.bytes >= copies_.options().bulk_bytes_min) {
    each_crew([&](SealCrew& crew) { crew.keep(id, host, parts); });
  }
  parts.insert(parts.begin(), world_.memory.fingerprint(host));
  carrying_.known[id].snapshot = std::move(parts);
}

void Runtime::other_work(uint32_t stream) {
  copies_.handle_work(stream, world_.device.legacy(stream));
}

Duration Runtime::write(const Range& range) {
  Duration cost{0};
  each_crew([&](SealCrew& crew) { cost += crew.write(range); });
  return cost;
}

// Only what our threads take away: without them too the program's threads share the cores.
Duration Runtime::shared(Duration think) const {
  const uint64_t theirs = world_.awake();
  const uint64_t before = std::max(theirs, world_.setup.platform.host.cores);
  const uint64_t with_us = std::max(theirs + carrying_.threads_at_work(), before);
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
  each_crew([&](SealCrew& crew) { crew.allocated(range, memory != MemoryKind::managed); });
}

void Runtime::freed(const Range& range) {
  allocations_.erase(range.address);
  copies_.handle_freed(range);
}

bool Runtime::mapped(const Range& range) const { return any_overlaps(mapped_, range); }

// --- 2. copy threads

// What ends lets others land that were looked at before.
void Runtime::pump() {
  for (bool again = true; again;) {
    again = false;
    for (auto& [id, crosser] : crossers_) {
      const bool over = crosser.go_on();
      if (over) next_ending(id, crosser);
      if (crosser.ahead()) crosser.ahead()->pump(carrying_.crossings);
      again = again || over;
    }
  }
}

void Runtime::sent(uint32_t id) { crossers_.at(id).sent(); }

void Runtime::crossed(uint32_t id) {
  Crosser& crosser = crossers_.at(id);
  if (crosser.crossed()) next_ending(id, crosser);
}

// --- 3. the driver's call returns

void Runtime::next_ending(CopyThreadId id, Crosser& crosser) {
  while (crosser.ended < crosser.endings.size()) {
    const Duration time = perform(crosser.endings[crosser.ended]);
    ++crosser.ended;
    if (time == Duration{0}) continue;
    world_.events.add(world_.now() + time, EventKind::ending, id);
    return;
  }
  for (const Ending& ending : crosser.endings) {
    if (const auto* deliver = std::get_if<Deliver>(&ending)) delivered(crosser, deliver->copy);
  }
  copies_.handle_delivered(id, crosser.endings);
  for (const Ending& ending : crosser.endings) {
    perform(ending);
    finish(ending);
  }
  const Crossing crossing = crosser.release();
  copies_.handle_ended(id, world_.now());
  for (const CopyId copy : crossing.copies) {
    if (copies_.under_way(copy)) continue;
    carrying_.known.erase(copy);
    each_crew([&](SealCrew& crew) { crew.forget(copy); });
  }
}

void Runtime::ending_done(uint32_t id) {
  Crosser& crosser = crossers_.at(id);
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

void Runtime::delivered(Crosser& crosser, CopyId copy) {
  const ProgramCopy& asked = carrying_.known[copy].copy;
  if (asked.direction == Direction::to_device) return crosser.delivered_early();
  const bool verified = copies_.failure_of(copies_.call_of(copy).context) == 0;
  if (crosser.is_behind_another(copy)) world_.oracle.starts(asked.call);
  write(asked.host);
  world_.memory.write(asked.host);
  world_.oracle.carried_to_host(asked.call, asked.host,
                                verified || !world_.setup.rules.deliver_after_failure);
  if (verified) world_.oracle.opened(asked.call);
}

// How long it takes; 0: it is done.
Duration Runtime::perform(const Ending& ending) {
  if (const auto* deliver = std::get_if<Deliver>(&ending)) {
    if (copies_.call_of(deliver->copy).direction == Direction::to_device) {
      return from_us(carrying_.ours.gpu.device_copy_cc_us);
    }
    return std::max(Duration{1},
                    memcpy_time(carrying_.ours.host, copies_.call_of(deliver->copy).host.bytes) /
                        (carrying_.helpers() + 1));
  }
  if (const auto* wipe = std::get_if<Wipe>(&ending)) {
    const Range& host = carrying_.known[wipe->copy].copy.host;
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

void Runtime::worker_done(uint32_t lane, uint64_t job) {
  crossers_.at(lane).ahead()->worker_done(job);
}

// --- faults, figures

void Runtime::stall_worker() {
  each_crew([](SealCrew& crew) { crew.stall_next(); });
}

void Runtime::stall_workers(Duration stall) {
  each_crew([&](SealCrew& crew) { crew.stall(stall); });
}

std::optional<Range> Runtime::some_planned(uint64_t pick) const {
  std::optional<Range> planned;
  each_crew([&](const SealCrew& crew) {
    if (!planned) planned = crew.some_planned(pick);
  });
  return planned;
}

void Runtime::count(Counters& counters) const {
  each_crew([&](const SealCrew& crew) { crew.count(counters); });
  counters.coalesced += copies_.together();
}

}  // namespace sealane::sim
