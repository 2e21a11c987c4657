// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sim/faults.h"

#include <array>

namespace sealane::sim {
namespace {

using FaultKind = ScriptedFault::Kind;
constexpr std::array kTampering{FaultKind::flip, FaultKind::drop, FaultKind::repeat,
                                FaultKind::swap};

}  // namespace

void FaultInjector::follow_script(uint32_t operation) {
  const auto [first, last] = script_.equal_range(operation);
  for (auto fault = first; fault != last; ++fault) {
    switch (fault->second.kind) {
      case FaultKind::rotation:
        for (uint32_t lane = 0; lane < runtime_.channels(); ++lane) runtime_.rotate(lane);
        break;
      case FaultKind::driver_message:
        if (runtime_.channels() > 0) runtime_.driver_message(runtime_.channels() - 1);
        break;
      case FaultKind::worker_stall:
        runtime_.stall_workers(fault->second.stall);
        break;
      default:
        runtime_.tamper_next(fault->second.kind);
        break;
    }
  }
  script_.erase(first, last);
}

void FaultInjector::crash(uint32_t context) {
  world_.log("work of the program fails context {}", context);
  if (!world_.error) world_.error = "work of the program failed";
  ++world_.counters.faults;
  world_.oracle.stops(context);
  world_.device.fail(context);
  threads_.wake_all(context);
}

// No program writes to a source while the call that copies it has not returned.
void FaultInjector::by_chance(Caller& caller, const std::function<bool(const Range&)>& copied) {
  if (!world_.setup.policy.carries()) return;
  const Faults& faults = world_.setup.faults;
  SeededRandom& random = world_.random;
  if (runtime_.channels() > 0) {
    const auto lane = static_cast<uint32_t>(random.below(runtime_.channels()));
    if (random.chance(faults.driver_message)) runtime_.driver_message(lane);
    if (random.chance(faults.rotation)) runtime_.rotate(lane);
  }
  if (random.chance(faults.worker_stall)) runtime_.stall_worker();
  if (random.chance(faults.crash)) crash(caller.context);
  if (random.chance(faults.tamper)) runtime_.tamper_next(kTampering[random.below(4)]);
  if (random.chance(faults.guard_write)) {
    const auto planned = runtime_.some_planned(random.next());
    if (planned && !copied(*planned)) {
      const uint64_t offset = random.below(planned->bytes);
      calls_.write(caller, {planned->address + offset, random.between(1, planned->bytes - offset)});
    }
  }
  if (random.chance(faults.free_in_flight)) {
    const auto planned = runtime_.some_planned(random.next());
    if (planned) runtime_.freed(*planned);
    if (planned && !runtime_.busy(*planned)) {
      world_.log("[{:#x}, +{}) is freed and allocated again", planned->address, planned->bytes);
      world_.memory.write(*planned);
      runtime_.allocated(*planned, MemoryKind::pinned);
    }
  }
}

}  // namespace sealane::sim
