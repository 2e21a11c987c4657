// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/seal_crew.h"

#include <algorithm>
#include <utility>

#include "core/pipeline/outlook.h"
#include "core/predict/paper.h"
#include "core/predict/tournament.h"
#include "platform/cost.h"
#include "sim/patience.h"

namespace sealane::sim {
namespace {

std::unique_ptr<GuessSource> make_source(Foresight foresight) {
  PredictLimits limits;
  limits.transfers_max = 4096;
  if (foresight == Foresight::paper) return std::make_unique<PaperPredictor>(4096);
  return std::make_unique<Tournament>(limits);
}

Costs costs_of(const Platform& platform, uint32_t workers) {
  Costs costs;
  costs.seal_ns_per_byte = 1 / platform.host.fast_aead_gb_per_s;
  costs.copy_ns_per_byte = 1 / platform.host.memcpy_gb_per_s;
  costs.message = from_us(platform.to_device.cc.message_us);
  costs.toll = costs.pad = from_us(platform.to_device.cc.toll_us);
  costs.link_ns_per_byte = 1 / platform.to_device.cc.link_gb_per_s;
  constexpr double kNsPerByte = 1e3 / (1 << 20);  // of 1 us/MiB
  costs.guard_ns_per_byte = platform.guard.arm_us_per_mib * kNsPerByte;
  costs.rewrite_ns_per_byte = platform.guard.rewrite_us_per_mib * kNsPerByte;
  costs.guard_check_ns_per_byte = platform.guard.check_us_per_mib * kNsPerByte;
  costs.digest_ns_per_byte = 1 / platform.guard.digest_gb_per_s;
  costs.workers = workers;
  return costs;
}

PipelineOptions pipeline_options(const World& world, uint32_t lanes, uint32_t workers) {
  const Setup& setup = world.setup;
  const Platform& platform = setup.platform;
  PipelineOptions options;
  options.policy = setup.policy;
  options.rules = setup.rules;
  options.slot_bytes_max = setup.slot_bytes_max / lanes;
  options.key_limits.messages = setup.key_messages_max;
  options.page_guards = setup.page_guards;
  options.costs = costs_of(platform, workers);
  options.costs.shared_core = world.threads + workers > platform.host.cores ? 1 : 0;
  return options;
}

// Nothing is sealed in software: the runtime notices, and the driver does everything.
Policy aside(const Policy& policy) {
  Policy result = *find_policy("stock");
  result.name = policy.name;
  return result;
}

}  // namespace

Policy settled_policy(const Setup& setup) {
  Policy policy = setup.policy;
  if (policy.confidential && !setup.platform.cc.copies_block) return aside(policy);
  if (!policy.where_it_pays) return policy;
  const Costs costs = costs_of(setup.platform, workers_for(setup));
  const bool may_pay = speculation_outlook(costs, !setup.page_guards).pays_if_waited();
  if (!may_pay) policy.foresight = Foresight::none;
  return policy;
}

uint32_t workers_for(const Setup& setup) {
  const uint64_t cores = std::max<uint64_t>(setup.platform.host.cores, 2);
  return static_cast<uint32_t>(std::min<uint64_t>(setup.workers, cores - 1));
}

SealCrew::SealCrew(World& world, SlotMemory& memory, uint32_t lane, uint32_t lanes,
                   uint32_t workers)
    : world_(world),
      memory_(memory),
      lane_(lane),
      workers_(workers),
      source_(make_source(world.setup.policy.foresight)),
      speculator_(pipeline_options(world, lanes, workers), *source_),
      slots_(SlotPool::kSlotsMax) {}

// --- guards

// Writing to guarded pages is slow the first time; nobody learns of it before the next check.
Duration SealCrew::write(const Range& range) {
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

Duration SealCrew::check_guards(const Range& host) {
  const GuardKind kind = speculator_.guard_of(host);
  if (kind == GuardKind::none) return Duration{0};
  for (Guarded& guarded : guarded_) {
    if (!guarded.range.overlaps(host)) continue;
    for (const Range& dirty : guarded.dirty) speculator_.handle_written(dirty);
    guarded.dirty.clear();
  }
  if (kind == GuardKind::digest) return compare_digests(host);
  return guard_check_time(world_.setup.platform.guard, host.bytes);
}

// Workers share them, one record each. What is being read now has no digest yet: nobody can tell
// whether it was read before it was written.
Duration SealCrew::compare_digests(const Range& host) {
  std::vector<Range> unknown;
  speculator_.sealing_ahead(host, unknown);
  for (const Range& range : unknown) speculator_.handle_written(range);
  uint64_t records = 0;
  uint64_t longest = 0;
  for (const Slot& slot : slots_) {
    if (!slot.digested || !slot.host.overlaps(host)) continue;
    ++records;
    longest = std::max(longest, slot.host.bytes);
  }
  const uint64_t threads = (world_.setup.policy.parallel ? workers_ : 0) + 1;
  const uint64_t in_turn = (records + threads - 1) / threads;
  return digest_time(world_.setup.platform.guard, longest) * static_cast<int64_t>(in_turn);
}

GuardKind SealCrew::guard_at(const Range& host) const {
  for (const Guarded& guarded : guarded_) {
    if (guarded.range.contains(host)) return guarded.kind;
  }
  return GuardKind::none;
}

// Protecting the driver's pages fails: the core has to be told what serves instead.
void SealCrew::arm(const Guard& guard) {
  const bool refused = guard.kind == GuardKind::page && unprotectable_.contains(guard.range);
  guarded_.push_back({guard.range, refused ? GuardKind::digest : guard.kind, {}});
  if (refused) {
    speculator_.handle_guarded(guard.range, GuardKind::digest);
  } else if (guard.kind == GuardKind::page) {
    guard_debt_ += guard_arm_time(world_.setup.platform.guard, guard.range.bytes);
  }
}

void SealCrew::allocated(const Range& range, bool guardable) {
  speculator_.handle_allocated(range);
  if (guardable) {
    unprotectable_.erase(range);
  } else {
    unprotectable_.add(range);
  }
}

// --- what the core asks for

void SealCrew::pump(uint32_t crossings) {
  for (uint64_t actions = 0;; ++actions) {
    if (actions == Patience::kActionsMax) {
      return world_.oracle.violate("livelock", "the core asks for ever more without waiting");
    }
    const auto action = speculator_.poll(world_.now());
    if (!action) break;
    run(*action, crossings);
  }
  const std::optional<Instant> deadline = speculator_.deadline();
  if (deadline && *deadline > world_.now() && timer_ != deadline) {
    timer_ = deadline;
    world_.events.add(*deadline, EventKind::timer);
  }
}

void SealCrew::run(const SealAction& action, uint32_t crossings) {
  if (const auto* seal = std::get_if<SealSlot>(&action)) {
    start(*seal, crossings);
  } else if (const auto* dropped = std::get_if<DropSlot>(&action)) {
    world_.log("slot {} is {}", dropped->slot, dropped->exposed ? "free" : "wiped");
    wipe(dropped->slot);
  } else if (const auto* guard = std::get_if<Guard>(&action)) {
    arm(*guard);
  } else if (const auto* unguard = std::get_if<Unguard>(&action)) {
    const auto found = std::find_if(guarded_.begin(), guarded_.end(), [&](const Guarded& each) {
      return each.range == unguard->range;
    });
    if (found != guarded_.end()) guarded_.erase(found);
  }
}

// All workers that are not needed elsewhere share each record.
void SealCrew::start(const SealSlot& what, uint32_t crossings) {
  const bool ahead = what.copy == kNoCopy;
  slots_[what.slot].host = what.host;
  memory_.bytes += what.host.bytes;
  world_.oracle.slots_hold(memory_.bytes);
  if (ahead) world_.oracle.seals_ahead(what.host);
  world_.log("workers seal [{:#x}, +{}) into slot {} of thread {}{}", what.host.address,
             what.host.bytes, what.slot, lane_, ahead ? ", ahead" : "");
  Job job{.what = what,
          .content = world_.memory.fingerprint(what.host),
          .digested = ahead && guard_at(what.host) == GuardKind::digest};
  for (const Snapshot& kept : snapshots_) {
    if (ahead || kept.copy != what.copy) continue;
    job.content = kept.contents[(what.host.address - kept.host.address) / kMessageBytes];
    job.from_memory = false;
  }
  Duration work = fast_aead_time(world_.setup.platform.host, what.host.bytes) / workers_;
  work = work * (1 + crossings) + std::exchange(guard_debt_, Duration{0});
  // One worker reads what is digested, so that it is the same bytes that are sealed.
  const Platform& platform = world_.setup.platform;
  if (job.digested) {
    work +=
        memcpy_time(platform.host, what.host.bytes) + digest_time(platform.guard, what.host.bytes);
  }
  if (std::exchange(stall_next_, false)) work += world_.setup.faults.stall;
  const Instant from = std::max(world_.now(), from_);
  world_.counters.workers_busy += work * workers_;
  world_.timeline.add({.track = Track::worker,
                       .index = 0,
                       .what = ahead ? "seal ahead" : "seal",
                       .bytes = what.host.bytes,
                       .from = from,
                       .until = from + work});
  jobs_.push_back(job);
  ++memory_.sealing;
  world_.events.add(from + world_.crowded(work, workers_), EventKind::worker_done, lane_,
                    jobs_.size() - 1);
}

void SealCrew::worker_done(size_t index) {
  const Job& job = jobs_[index];
  const SlotId slot = job.what.slot;
  --memory_.sealing;
  if (world_.random.chance(world_.setup.faults.no_room)) {
    world_.log("there is no memory for slot {} of thread {}", slot, lane_);
    memory_.bytes -= std::exchange(slots_[slot].host, {}).bytes;
    return speculator_.handle_sealed(slot, Speculator::Sealed::no_room, world_.now());
  }
  uint64_t content = job.content;
  if (job.from_memory && world_.memory.fingerprint(job.what.host) != content) {
    content = world_.memory.garbage();  // it changed while it was read
  }
  const auto epoch = static_cast<uint32_t>(job.what.key - 1);
  slots_[slot].sealed = {epoch, position_of(job.what.iv, epoch), content};
  slots_[slot].digested = job.digested;
  world_.oracle.slot_holds(lane_, slot, slots_[slot].sealed);
  speculator_.handle_sealed(slot, Speculator::Sealed::whole, world_.now());
}

void SealCrew::wipe(SlotId id) {
  memory_.bytes -= slots_[id].host.bytes;
  slots_[id] = {};
  world_.oracle.slot_wiped(lane_, id);
}

// Its bytes are the driver's: none that were sealed ahead.
bool SealCrew::own_message(const Channel& channel, uint64_t bytes) {
  SeenMessage message{.key = channel.key(), .iv = channel.iv(), .piece = {0, bytes}};
  speculator_.handle_seen(message.key, message.iv);
  Verdict verdict = speculator_.answer(message, world_.now());
  if (verdict.kind == Verdict::Kind::compare) {
    message.same = false;
    verdict = speculator_.answer(message, world_.now());
  }
  const bool from_slot = verdict.kind == Verdict::Kind::from_slot;
  if (from_slot || verdict.kind == Verdict::Kind::seal_now) {
    speculator_.handle_answered(message.iv, from_slot, bytes, world_.now());
  }
  return from_slot;
}

void SealCrew::keep(CopyId copy, const Range& host, std::vector<uint64_t> contents) {
  snapshots_.push_back({copy, host, std::move(contents)});
}

void SealCrew::forget(CopyId copy) {
  std::erase_if(snapshots_, [&](const Snapshot& kept) { return kept.copy == copy; });
}

std::optional<Range> SealCrew::some_planned(uint64_t pick) const {
  const auto& planned = speculator_.pipeline().planned();
  if (planned.empty()) return std::nullopt;
  return planned[pick % planned.size()].host;
}

void SealCrew::count(Counters& counters) const {
  const Pipeline& pipeline = speculator_.pipeline();
  const Pipeline::Stats& stats = pipeline.stats();
  counters.bulk_requests += stats.requests;
  counters.bulk_hits += stats.hits;
  counters.messages += stats.messages;
  counters.messages_ready += stats.messages_ready;
  counters.voided += stats.voided;
  counters.padded += stats.padded;
  counters.relinquished += stats.relinquished;
  counters.held += stats.held;
  counters.resealed += stats.resealed;
  counters.slot_bytes_max = std::max(counters.slot_bytes_max, pipeline.slots().bytes_peak());
}

}  // namespace sealane::sim
