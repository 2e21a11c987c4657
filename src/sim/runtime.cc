// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/runtime.h"

#include <algorithm>
#include <utility>

#include "core/predict/paper.h"
#include "core/predict/tournament.h"
#include "platform/cost.h"
#include "sim/patience.h"

namespace sealane::sim {
namespace {

constexpr Duration kCallSmall{300};  // what interception and bookkeeping cost the caller
constexpr Duration kCallBulk{1'500};
constexpr Duration kDeferred{500};  // a call that is put aside
constexpr Duration kPoll{2'000};    // until a thread of ours sees that the device is done
constexpr uint64_t kOpenInline = 64_KiB;

std::unique_ptr<GuessSource> make_source(Foresight foresight) {
  PredictLimits limits;
  limits.transfers_max = 4096;
  if (foresight == Foresight::tournament) return std::make_unique<Tournament>(limits);
  if (foresight == Foresight::paper) return std::make_unique<PaperPredictor>(4096);
  return nullptr;
}

// No more than there are cores beside the lane's thread.
uint32_t workers_for(const Setup& setup) {
  const uint64_t cores = std::max<uint64_t>(setup.platform.host.cores, 2);
  return static_cast<uint32_t>(std::min<uint64_t>(setup.workers, cores - 1));
}

PipelineOptions pipeline_options(const Setup& setup, uint32_t threads) {
  const Platform& platform = setup.platform;
  PipelineOptions options;
  options.policy = setup.policy;
  options.rules = setup.rules;
  options.slot_bytes_max = setup.slot_bytes_max;
  options.key_limits.messages = setup.key_messages_max;
  options.lanes = setup.policy.separate_lanes ? 2 : 1;
  options.page_guards = setup.page_guards;
  Costs& costs = options.costs;
  costs.seal_ns_per_byte = 1 / platform.host.fast_aead_gb_per_s;
  costs.copy_ns_per_byte = 1 / platform.host.memcpy_gb_per_s;
  costs.message = from_us(platform.to_device.cc.message_us);
  costs.toll = costs.pad = from_us(platform.to_device.cc.toll_us);
  costs.scatter = from_us(platform.gpu.device_copy_cc_us);
  constexpr double kNsPerByte = 1e3 / (1 << 20);  // of 1 us/MiB
  costs.guard_ns_per_byte = platform.guard.arm_us_per_mib * kNsPerByte;
  costs.rewrite_ns_per_byte = platform.guard.rewrite_us_per_mib * kNsPerByte;
  costs.guard_check_ns_per_byte = platform.guard.check_us_per_mib * kNsPerByte;
  costs.digest_ns_per_byte = 1 / platform.guard.digest_gb_per_s;
  costs.workers = workers_for(setup);
  costs.shared_core = threads + costs.workers > platform.host.cores ? 1 : 0;
  return options;
}

OrderOptions order_options(const Setup& setup) {
  OrderOptions options;
  options.rules = setup.rules;
  options.coalesce = setup.policy.coalesce &&
                     setup.platform.to_device.cc.toll_us > setup.platform.gpu.device_copy_cc_us;
  return options;
}

}  // namespace

Runtime::Runtime(World& world, Threads& threads)
    : world_(world),
      threads_(threads),
      source_(make_source(world.setup.policy.foresight)),
      pipeline_(pipeline_options(world.setup, world.threads), source_.get()),
      order_(order_options(world.setup)),
      lanes_(world.setup.policy.separate_lanes ? 2 : 1),
      workers_(workers_for(world.setup)),
      of_flight_(Pipeline::kFlightsMax),
      slots_(SlotPool::kSlotsMax) {}

// --- the program's calls

Duration Runtime::call(const ProgramCall& call) {
  if (calls_.size() <= call.call) calls_.resize(call.call + 256);
  calls_[call.call] = call;
  const uint64_t before = world_.device.submitted(call.stream);
  in_call_ = true;
  if (call.kind == ItemKind::record) {
    order_.handle_record(call.stream, call.event, call.call);
  } else if (call.kind == ItemKind::wait) {
    order_.handle_wait(call.stream, call.event, call.call);
  } else {
    order_.handle_call(call.stream, call.call);
  }
  pump();
  in_call_ = false;
  const bool direct = world_.device.submitted(call.stream) > before;
  if (!direct) return kDeferred;
  const Gpu& gpu = world_.setup.platform.gpu;
  if (call.kind == ItemKind::kernel) return launch_time(gpu, true);
  return kDeferred + (call.kind == ItemKind::record ? record_surcharge(gpu, true) : Duration{0});
}

Duration Runtime::copy(const ProgramCopy& copy, uint32_t thread) {
  Carried& record = carried(copy.call);
  record.copy = copy;
  record.thread = thread;
  record.small = copy.direction == Direction::to_device &&
                 copy.host.bytes < world_.setup.policy.bulk_bytes_min &&
                 !(copy.memory == MemoryKind::pinned && pipeline_.inbound(copy.host));
  Duration cost = record.small ? kCallSmall : kCallBulk;
  in_call_ = true;
  if (record.small) {
    record.content = world_.memory.fingerprint(copy.host);
    cost += memcpy_time(world_.setup.platform.host, copy.host.bytes);
  } else {
    if (copy.direction == Direction::to_device) cost += check_guards(copy.host);
    const auto bulk = static_cast<LaneId>(lanes_.size() - 1);
    record.flight = pipeline_.handle_copy(
        {.direction = copy.direction, .lane = bulk, .host = copy.host, .memory = copy.memory},
        world_.now());
    of_flight_[record.flight] = {copy.call};
    record.waits_for_release = copy.direction == Direction::to_device &&
                               (copy.memory != MemoryKind::pinned || !world_.setup.policy.async);
  }
  order_.handle_copy({.key = copy.call,
                      .stream = copy.stream,
                      .direction = copy.direction,
                      .host = copy.host,
                      .device = copy.device,
                      .small = record.small});
  pump();
  in_call_ = false;
  return cost;
}

bool Runtime::blocks(CallId call) const {
  const Carried& record = carried_[call];
  return record.copy.sync || record.waits_for_release;
}

void Runtime::sync_stream(uint32_t stream, uint32_t thread) {
  pipeline_.handle_synchronise(world_.now());
  order_.handle_sync_stream(stream, thread);
  pump();
}

void Runtime::sync_event(uint32_t event, uint32_t thread) {
  pipeline_.handle_synchronise(world_.now());
  order_.handle_sync_event(event, thread);
  pump();
}

void Runtime::sync_all(uint32_t thread) {
  pipeline_.handle_synchronise(world_.now());
  order_.handle_sync_all(thread);
  pump();
}

// Writing to guarded pages is slow the first time; nobody learns of it before the next check.
Duration Runtime::write(const Range& range) {
  Duration cost{0};
  for (Guarded& guarded : guarded_) {
    if (!guarded.range.overlaps(range)) continue;
    const uint64_t first = std::max(guarded.range.address, range.address);
    const uint64_t end = std::min(guarded.range.end(), range.end());
    if (guarded.kind == GuardKind::page && guarded.dirty.empty()) {
      cost += guard_rewrite_time(world_.setup.platform.guard, end - first);
    }
    guarded.dirty.push_back({first, end - first});
  }
  return cost;
}

Duration Runtime::check_guards(const Range& host) {
  const GuardKind kind = pipeline_.guard_of(host);
  if (kind == GuardKind::none) return Duration{0};
  for (Guarded& guarded : guarded_) {
    if (!guarded.range.overlaps(host)) continue;
    for (const Range& dirty : guarded.dirty) pipeline_.handle_written(dirty, world_.now());
    guarded.dirty.clear();
  }
  return kind == GuardKind::digest ? digest_time(world_.setup.platform.guard, host.bytes)
                                   : guard_check_time(world_.setup.platform.guard, host.bytes);
}

void Runtime::freed(const Range& range) {
  pipeline_.handle_freed(range, world_.now());
  pump();
}

// --- what the core decides

void Runtime::pump() {
  for (uint64_t actions = 0;; ++actions) {
    if (actions == Patience::kActionsMax) {
      return world_.oracle.violate("livelock", "the core asks for ever more without waiting");
    }
    if (pipeline_.failed() && !failed_) fail("a record did not verify: the context is lost");
    if (auto action = order_.poll()) {
      run(*action);
    } else if (auto next = pipeline_.poll(world_.now())) {
      run(*next);
    } else {
      break;
    }
  }
  const std::optional<Instant> deadline = pipeline_.deadline();
  if (deadline && *deadline > world_.now() && timer_ != deadline) {
    timer_ = deadline;
    world_.events.add(*deadline, EventKind::timer);
  }
}

void Runtime::run(const OrderAction& action) {
  if (const auto* submit = std::get_if<Submit>(&action)) {
    const ProgramCall& call = calls_[submit->call];
    Instant at = world_.now();
    if (!in_call_) {  // one of our threads launches what was put aside
      const Duration cost = call.kind == ItemKind::kernel
                                ? launch_time(world_.setup.platform.gpu, true)
                                : Duration{0};
      at = submitter_free_ = std::max(submitter_free_, at) + cost;
    }
    world_.device.submit({.kind = call.kind,
                          .stream = call.stream,
                          .call = call.call,
                          .record = call.record,
                          .run_time = call.run_time,
                          .not_before = at});
  } else if (const auto* gate = std::get_if<Gate>(&action)) {
    world_.device.submit(
        {.kind = ItemKind::gate, .stream = gate->stream, .call = static_cast<CallId>(gate->copy)});
  } else if (const auto* watch = std::get_if<Watch>(&action)) {
    const bool polled = world_.asleep > 0 || in_call_;
    world_.device.watch(watch->stream, watch->count, polled ? Duration{0} : kPoll);
  } else if (const auto* batch = std::get_if<Issue>(&action)) {
    issue(*batch);
  } else {
    threads_.wake(std::get<Wake>(action).waiter);
  }
}

void Runtime::issue(const Issue& batch) {
  const auto first = static_cast<CallId>(batch.copies[0]);
  Carried& record = carried(first);
  if (record.copy.direction == Direction::to_host) {
    issue_to_host(first);
  } else if (!record.small) {
    world_.log("copy {} may go", first);
    pipeline_.handle_ready(record.flight, world_.now());
  } else {
    uint64_t bytes = 0;
    std::vector<CallId> calls;
    for (uint32_t i = 0; i < batch.count; ++i) {
      calls.push_back(static_cast<CallId>(batch.copies[i]));
      bytes += carried(calls.back()).copy.host.bytes;
    }
    world_.log("{} small copies from {} on may go", batch.count, first);
    const FlightId flight = pipeline_.handle_copy({.lane = 0,
                                                   .host = {0, bytes},
                                                   .memory = MemoryKind::pageable,
                                                   .snapshot = true,
                                                   .ready = true},
                                                  world_.now());
    of_flight_[flight] = std::move(calls);
  }
}

void Runtime::run(const Action& action) {
  if (const auto* seal = std::get_if<Seal>(&action)) {
    start_seal(*seal, seal->flight != kNone && carried(of_flight_[seal->flight][0]).small);
  } else if (const auto* out = std::get_if<Publish>(&action)) {
    publish(*out);
  } else if (const auto* pad = std::get_if<Pad>(&action)) {
    world_.log("lane {} pads {} positions from {}", pad->lane, pad->count, pad->position);
    lanes_[pad->lane].queue.push_back({.publish = std::nullopt, .pad = *pad});
    start_lane(pad->lane);
  } else if (const auto* hold = std::get_if<Hold>(&action)) {
    world_.log("lane {} holds flight {}", hold->lane, hold->flight);
  } else if (const auto* wiped = std::get_if<Void>(&action)) {
    world_.log("slot {} is wiped", wiped->slot);
    slot_bytes_ -= std::exchange(slots_[wiped->slot].bytes, 0);
    slots_[wiped->slot].sealed.content = 0;
  } else if (const auto* guard = std::get_if<Guard>(&action)) {
    arm(*guard);
  } else if (const auto* unguard = std::get_if<Unguard>(&action)) {
    const auto found = std::find_if(guarded_.begin(), guarded_.end(), [&](const Guarded& each) {
      return each.range == unguard->range;
    });
    if (found != guarded_.end()) guarded_.erase(found);
  } else if (const auto* opening = std::get_if<Open>(&action)) {
    for (uint64_t i = incoming_.size(); i-- > 0;) {
      if (incoming_[i].call == of_flight_[opening->flight][0] &&
          incoming_[i].message == opening->message) {
        start_open(i);
        break;
      }
    }
  } else if (const auto* release = std::get_if<Release>(&action)) {
    for (const CallId call : of_flight_[release->flight]) {
      Carried& record = carried(call);
      if (!record.waits_for_release || !world_.setup.policy.async) continue;
      record.waits_for_release = false;
      if (!record.copy.sync) threads_.wake(record.thread);
    }
  } else {
    done(std::get<Done>(action).flight);
  }
}

// Protecting the driver's pages fails: the core has to be told what serves instead.
void Runtime::arm(const Guard& guard) {
  const bool refused = guard.kind == GuardKind::page && unprotectable_.contains(guard.range);
  guarded_.push_back({guard.range, refused ? GuardKind::digest : guard.kind, {}});
  if (refused) {
    pipeline_.handle_guarded(guard.range, GuardKind::digest);
  } else if (guard.kind == GuardKind::page) {
    guard_debt_ += guard_arm_time(world_.setup.platform.guard, guard.range.bytes);
  }
}

void Runtime::allocated(const Range& range, MemoryKind memory) {
  pipeline_.handle_allocated(range);
  if (memory == MemoryKind::managed) {
    unprotectable_.add(range);
  } else {
    unprotectable_.erase(range);
  }
}

// --- workers

Runtime::Worker* Runtime::idle_worker(uint32_t& index) {
  if (busy_workers_ >= workers_.size()) return nullptr;  // those without a job help a lane
  for (index = 0; index < workers_.size(); ++index) {
    if (!workers_[index].busy) return &workers_[index];
  }
  return nullptr;
}

uint64_t Runtime::threads_of_ours() const {
  uint64_t running = busy_workers_;
  for (const Lane& lane : lanes_) running += lane.busy ? 1 : 0;
  return running;
}

// Only what our threads take away: without them too the program's threads share the cores.
Duration Runtime::shared(Duration think) const {
  const uint64_t theirs = world_.awake();
  const uint64_t before = std::max(theirs, world_.setup.platform.host.cores);
  const uint64_t with_us = std::max(theirs + threads_of_ours(), before);
  return think * static_cast<int64_t>(with_us) / static_cast<int64_t>(before);
}

Duration Runtime::seal_time(uint64_t bytes) const {
  const Platform& platform = world_.setup.platform;
  return world_.setup.policy.fast_engine
             ? fast_aead_time(platform.host, bytes)
             : stock_aead_time(platform, platform.to_device.cc, bytes, bytes);
}

void Runtime::start_seal(const Seal& seal, bool snapshot) {
  uint32_t index = 0;
  Worker* worker = idle_worker(index);
  if (worker == nullptr) {
    seals_waiting_.push_back({seal, snapshot});
    return;
  }
  slots_[seal.slot].bytes = seal.host.bytes;
  slot_bytes_ += seal.host.bytes;
  world_.oracle.slots_hold(slot_bytes_);
  if (seal.flight == kNone) world_.oracle.seals_ahead(seal.host);
  world_.log("worker {} seals [{:#x}, +{}) for lane {} position {}{}", index, seal.host.address,
             seal.host.bytes, seal.lane, seal.position, seal.flight == kNone ? ", ahead" : "");
  ++busy_workers_;
  worker->busy = true;
  worker->seal = seal;
  worker->from_memory = !snapshot && seal.reopen == kNone;
  worker->content = 0;
  if (seal.reopen != kNone) worker->content = slots_[seal.reopen].sealed.content;
  if (worker->from_memory) worker->content = world_.memory.fingerprint(seal.host);
  Duration work = seal_time(seal.host.bytes) * (seal.reopen != kNone ? 2 : 1);
  work += std::exchange(guard_debt_, Duration{0});
  if (std::exchange(stall_next_, false)) work += world_.setup.faults.stall;
  occupy(index, seal.flight == kNone ? "seal ahead" : "seal", seal.host.bytes,
         world_.crowded(work, threads_of_ours()));
}

void Runtime::occupy(uint32_t worker, const char* with, uint64_t bytes, Duration work) {
  const Instant from = std::max(world_.now(), workers_from_);
  world_.counters.workers_busy += work;
  world_.timeline.add({.track = Track::worker,
                       .index = worker,
                       .what = with,
                       .bytes = bytes,
                       .from = from,
                       .until = from + work});
  world_.events.add(from + work, EventKind::worker_done, worker);
}

void Runtime::worker_done(uint32_t index) {
  Worker& worker = workers_[index];
  worker.busy = false;
  --busy_workers_;
  if (worker.seal) {
    const Seal seal = *std::exchange(worker.seal, std::nullopt);
    if (worker.from_memory && world_.memory.fingerprint(seal.host) != worker.content) {
      worker.content = world_.memory.garbage();  // it changed while it was read
    }
    slots_[seal.slot].sealed = {seal.epoch.number, seal.position, worker.content};
    pipeline_.handle_sealed(seal.slot, world_.now());
  } else {
    open(worker.incoming);
  }
  start_waiting_seals();
}

void Runtime::start_waiting_seals() {
  while (!seals_waiting_.empty() && busy_workers_ < workers_.size() && !failed_) {
    const auto [next, snapshot] = seals_waiting_.front();
    seals_waiting_.pop_front();
    start_seal(next, snapshot);
  }
}

// --- ends

void Runtime::land(CallId call) {
  const Carried& record = carried(call);
  world_.oracle.completes(call);
  order_.handle_landed(record.copy.stream, call, record.copy.direction);
  world_.device.landed(call);
}

void Runtime::done(FlightId flight) {
  const std::vector<CallId> calls = std::move(of_flight_[flight]);
  of_flight_[flight].clear();
  bool small = false;
  for (const CallId call : calls) {
    Carried& record = carried(call);
    small = small || record.small;
    world_.log("copy {} is done", call);
    if (record.copy.direction == Direction::to_host) {
      world_.oracle.opened(call);
      order_.handle_opened(call);
    } else {
      land(call);
    }
    if (std::exchange(record.waits_for_release, false) && !record.copy.sync)
      threads_.wake(record.thread);
  }
  if (small) order_.handle_batch_landed();
}

void Runtime::notify(uint32_t stream, uint64_t count) { order_.handle_reached(stream, count); }

// --- from the device

void Runtime::issue_to_host(CallId call) {
  const Carried& record = carried(call);
  const SealedPath& cc = path(Direction::to_host);
  world_.log("copy {} to the host may go", call);
  world_.oracle.starts(call);
  pipeline_.handle_ready(record.flight, world_.now());
  Instant at =
      std::max(to_host_free_, world_.now()) + toll_time(cc, host_memory(record.copy.memory));
  const uint32_t messages = message_count(record.copy.host.bytes);
  for (uint32_t i = 0; i < messages; ++i) {
    at = world_.device.transfer(Direction::to_host, at, link_time(cc, part(record, i).bytes));
    const bool tampered = std::exchange(tamper_next_, std::nullopt).has_value();
    incoming_.push_back({call, i, tampered});
    world_.events.add(at, EventKind::arrived, i + 1 == messages, incoming_.size() - 1);
  }
  to_host_free_ = at;
}

void Runtime::arrived(uint64_t index) {
  if (failed_) return;
  const Incoming in = incoming_[index];
  Carried& record = carried(in.call);
  const bool last = ++record.arrived == message_count(record.copy.host.bytes);
  if (last) land(in.call);
  pipeline_.handle_arrived(record.flight, in.message, world_.now());
}

// Small ones, and those no worker is free for, are opened by the thread that brought them.
void Runtime::start_open(uint64_t index) {
  const Incoming& in = incoming_[index];
  const Range range = part(carried(in.call), in.message);
  const Platform& platform = world_.setup.platform;
  const Duration work = message_time(platform.cc, path(Direction::to_host), range.bytes) +
                        seal_time(range.bytes) +
                        staging_time(path(Direction::to_host),
                                     host_memory(carried(in.call).copy.memory), range.bytes);
  uint32_t worker_index = 0;
  Worker* worker = idle_worker(worker_index);
  if (range.bytes > kOpenInline && worker != nullptr && world_.setup.policy.parallel) {
    ++busy_workers_;
    worker->busy = true;
    worker->incoming = index;
    occupy(worker_index, "open", range.bytes, world_.crowded(work, threads_of_ours()));
    return;
  }
  opener_free_ = std::max(opener_free_, world_.now()) + world_.crowded(work, threads_of_ours());
  world_.events.add(opener_free_, EventKind::opened_inline, 0, index);
}

void Runtime::opened_inline(uint64_t index) { open(index); }

void Runtime::open(uint64_t index) {
  if (failed_) return;
  const Incoming& in = incoming_[index];
  const Carried& record = carried(in.call);
  if (!in.tampered) {
    const Range range = part(record, in.message);
    world_.memory.write(range);
    world_.oracle.host_written_by(in.call, range);
  } else {
    ++world_.counters.faults;
  }
  pipeline_.handle_opened(record.flight, in.message, !in.tampered, world_.now());
}

// --- failure, faults, figures

void Runtime::fail(std::string what) {
  failed_ = true;
  world_.error = std::move(what);
  world_.oracle.lane_failed();
  world_.log("{}", *world_.error);
  pipeline_.handle_device_error();
  order_.handle_failed();
  for (Lane& lane : lanes_) {
    lane.queue.clear();
    lane.on_link.clear();
    lane.missing.reset();
  }
  threads_.wake_all();
}

std::optional<Range> Runtime::some_planned(uint64_t pick) const {
  const auto& planned = pipeline_.lane(static_cast<LaneId>(lanes_.size() - 1)).planned;
  if (planned.empty()) return std::nullopt;
  return planned[pick % planned.size()].host;
}

void Runtime::count(Counters& counters) const {
  const Pipeline::Stats& stats = pipeline_.stats();
  counters.bulk_requests += stats.requests;
  counters.bulk_hits += stats.hits;
  counters.messages += stats.messages;
  counters.messages_ready += stats.messages_ready;
  counters.voided += stats.voided;
  counters.padded += stats.padded;
  counters.relinquished += stats.relinquished;
  counters.held += stats.held;
  counters.resealed += stats.resealed;
  counters.coalesced += order_.stats().coalesced;
  counters.slot_bytes_max = std::max(counters.slot_bytes_max, pipeline_.slots().bytes_peak());
}

}  // namespace sealane::sim
