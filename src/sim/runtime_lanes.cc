// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The runtime's lanes: messages are sealed or taken from their slots, exposed, carried over the
// link and received, one after the other; the driver's own use of a lane and new keys come between
// them; the bus may do to a message what an attacker could.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/runtime.h"

namespace sealane::sim {
namespace {

using Tampering = ScriptedFault::Kind;

constexpr Duration kWakeLane{2'000};          // a lane's thread that was asleep
constexpr uint64_t kSplitBytesMin = 256_KiB;  // worth the help of other cores
constexpr Duration kJoin{3'000};
constexpr Duration kWatchdog{10'000'000};  // until the device gives a record up

}  // namespace

Runtime::Carried& Runtime::carried(CallId call) {
  if (carried_.size() <= call) carried_.resize(call + 256);
  return carried_[call];
}

Range Runtime::part(const Carried& record, uint32_t message) const {
  return message_range(record.copy.host, message);
}

const SealedPath& Runtime::path(Direction direction) const {
  const Platform& platform = world_.setup.platform;
  return direction == Direction::to_device ? platform.to_device.cc : platform.to_host.cc;
}

void Runtime::publish(const Publish& out) {
  lanes_[out.lane].queue.push_back({.publish = out, .pad = {}, .copies = of_flight_[out.flight]});
  start_lane(out.lane);
}

// What the record will hold if it is made now.
uint64_t Runtime::content_of(const Outgoing& job) const {
  const Publish& out = *job.publish;
  if (out.slot != kNone) return slots_[out.slot].sealed.content;
  if (out.reopen != kNone) return slots_[out.reopen].sealed.content;
  const Carried& record = carried_[job.copies[0]];
  return record.small ? 0 : world_.memory.fingerprint(part(record, out.message));
}

// Copying a ready record is memory traffic: idle workers take their share.
Duration Runtime::publish_time(Lane& lane, const Publish& out, uint64_t bytes) {
  const Duration alone = memcpy_time(world_.setup.platform.host, bytes);
  if (bytes < kSplitBytesMin || !world_.setup.policy.parallel) return alone;
  while (lane.helpers < out.helpers && busy_workers_ < workers_.size()) {
    ++lane.helpers;
    ++busy_workers_;
  }
  if (lane.helpers == 0) return alone;
  return alone / (lane.helpers + 1) + kJoin;
}

void Runtime::start_lane(uint32_t id) {
  Lane& lane = lanes_[id];
  if (lane.busy || lane.queue.empty() || failed_) return;
  lane.busy = true;
  Outgoing& job = lane.queue.front();
  const Platform& platform = world_.setup.platform;
  const SealedPath& cc = path(Direction::to_device);
  Duration work{0};
  if (!job.publish) {
    work = toll_time(cc, HostMemory::pinned) * static_cast<int64_t>(job.pad.count);
  } else {
    const Publish& out = *job.publish;
    const Carried& record = carried(job.copies[0]);
    uint64_t bytes = 0;
    if (record.small) {
      for (const CallId call : job.copies) bytes += carried(call).copy.host.bytes;
    } else {
      bytes = part(record, out.message).bytes;
    }
    const HostMemory memory = record.small ? HostMemory::pinned : host_memory(record.copy.memory);
    job.content = content_of(job);
    if (!out.same_crossing) work += toll_time(cc, memory);
    work += message_time(platform.cc, cc, bytes);
    work += out.slot != kNone ? publish_time(lane, out, bytes) : seal_time(bytes);
    if (out.slot == kNone && out.reopen != kNone) work += seal_time(bytes);
    if (!record.copy.sync && lane.idle_since < world_.now() && !out.same_crossing)
      work += kWakeLane;
    if (tamper_next_ && !record.small) job.tampered = std::exchange(tamper_next_, std::nullopt);
  }
  work = world_.crowded(work, threads_of_ours());
  world_.counters.workers_busy += work * lane.helpers;
  world_.timeline.add({.track = Track::lane,
                       .index = id,
                       .what = job.publish ? "publish" : "pad",
                       .from = world_.now(),
                       .until = world_.now() + work});
  world_.events.add(world_.now() + work, EventKind::lane_done, id);
}

void Runtime::lane_done(uint32_t id) {
  Lane& lane = lanes_[id];
  lane.busy = false;
  lane.idle_since = world_.now();
  busy_workers_ -= std::exchange(lane.helpers, 0);
  start_waiting_seals();
  if (failed_) return;
  Outgoing job = std::move(lane.queue.front());
  lane.queue.pop_front();
  expose(id, job);
  start_lane(id);
}

// The bytes are in the bounce buffer: the bus and the device see them.
void Runtime::expose(uint32_t id, Outgoing& job) {
  Lane& lane = lanes_[id];
  const Platform& platform = world_.setup.platform;
  Duration busy{0};
  Duration scatter{0};
  if (!job.publish) {
    for (uint64_t i = 0; i < job.pad.count; ++i) {
      world_.oracle.exposes(id, job.pad.position + i, nullptr);
    }
  } else {
    const Publish& out = *job.publish;
    const bool from_memory =
        out.slot == kNone && out.reopen == kNone && !carried(job.copies[0]).small;
    if (from_memory && content_of(job) != job.content) job.content = world_.memory.garbage();
    Oracle::Sealed record{out.epoch.number, out.position, job.content};
    if (out.slot != kNone) record = slots_[out.slot].sealed;
    world_.log("lane {} exposes position {}: flight {} message {}{}", id, out.position, out.flight,
               out.message, out.slot == kNone ? ", sealed by the lane" : "");
    world_.oracle.exposes(id, out.position, &record);
    for (const CallId call : job.copies) {
      const Carried& each = carried(call);
      world_.oracle.starts(call);
      const uint64_t bytes = each.small ? each.copy.host.bytes : part(each, out.message).bytes;
      lane.key_bytes += bytes;
      busy += link_time(path(Direction::to_device), bytes);
      if (job.tampered != Tampering::flip && job.tampered != Tampering::drop) {
        world_.oracle.delivers(call, each.small ? each.copy.host : part(each, out.message),
                               each.small ? each.content : job.content);
      }
    }
    const size_t copies = job.copies.size();
    if (copies > 1)
      scatter = from_us(platform.gpu.device_copy_cc_us) * static_cast<int64_t>(copies);
  }
  const Instant across = world_.device.transfer(Direction::to_device, world_.now(), busy) + scatter;
  if (job.tampered == Tampering::drop || job.tampered == Tampering::swap) {
    lane.missing = std::move(job);
    world_.events.add(across + kWatchdog, EventKind::watchdog, id);
    return;
  }
  lane.on_link.push_back(std::move(job));
  world_.events.add(across, EventKind::landed, id);
  if (lane.key_bytes >= platform.cc.key_rotation_bytes) rotate(id);  // as the driver does
}

void Runtime::landed(uint32_t id) {
  Lane& lane = lanes_[id];
  if (failed_) return;
  const Outgoing job = std::move(lane.on_link.front());
  lane.on_link.pop_front();
  if (lane.missing) {  // the device counts: this is not the record it waits for
    return reject(lane.missing->tampered == Tampering::drop ? "in place of a lost one"
                                                            : "before its turn");
  }
  if (job.tampered == Tampering::flip) return reject("that was changed");
  const bool pad = !job.publish;
  const uint64_t position = pad ? job.pad.position + job.pad.count - 1 : job.publish->position;
  if (!pad && job.publish->slot != kNone) {
    slot_bytes_ -= std::exchange(slots_[job.publish->slot].bytes, 0);
  }
  pipeline_.handle_published(static_cast<LaneId>(id), position, world_.now());
  if (job.tampered == Tampering::repeat) return reject("for the second time");
  between_messages(id);
}

void Runtime::reject(std::string_view which) {
  ++world_.counters.faults;
  fail(fmt::format("the device rejected a record {}: the context is lost", which));
}

// Nothing came behind the record that did not come. What was to change places with it has none.
void Runtime::watchdog(uint32_t id) {
  Lane& lane = lanes_[id];
  if (failed_) return;
  Outgoing job = *std::exchange(lane.missing, std::nullopt);
  if (job.tampered == Tampering::drop) return reject("that never came");
  lane.on_link.push_front(std::move(job));
  landed(id);
}

// The driver uses the channel, or changes its key, only while none of our messages is under way.
void Runtime::between_messages(uint32_t id) {
  Lane& lane = lanes_[id];
  if (!lane.queue.empty() || !lane.on_link.empty() || lane.missing) return;
  if (lane.rotating) {
    world_.events.add(world_.now() + from_us(world_.setup.platform.cc.key_rotation_us),
                      EventKind::rotation_done, id);
    return;
  }
  for (; lane.driver_messages > 0; --lane.driver_messages) {
    const uint64_t position = world_.oracle.counter(id);
    world_.oracle.exposes(id, position, nullptr);
    world_.log("the driver uses position {} of lane {}", position, id);
    pipeline_.handle_consumed(static_cast<LaneId>(id), position + 1, world_.now());
  }
}

void Runtime::rotation_done(uint32_t id) {
  if (failed_) return;
  lanes_[id].rotating = false;
  lanes_[id].key_bytes = 0;
  ++world_.counters.rotations;
  world_.log("lane {} has a new key", id);
  world_.oracle.rotates(id);
  pipeline_.handle_rotated(static_cast<LaneId>(id), world_.now());
  between_messages(id);
}

void Runtime::driver_message(uint32_t id) {
  ++lanes_[id].driver_messages;
  if (!lanes_[id].rotating) between_messages(id);
  pump();
}

void Runtime::rotate(uint32_t id) {
  if (lanes_[id].rotating) return;
  lanes_[id].rotating = true;
  pipeline_.handle_paused(static_cast<LaneId>(id));
  between_messages(id);
}

}  // namespace sealane::sim
