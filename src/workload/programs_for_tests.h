// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary programs that are programs (program_checker.h), for property tests.
#pragma once

#include <map>

#include "base/random.h"
#include "workload/operation.h"
#include "workload/program_checker.h"

namespace sealane::workload {

inline Action arbitrary_action(SeededRandom& random) {
  const auto id = [&] { return static_cast<uint32_t>(random.below(4)); };
  const auto context = [&] { return ContextId{id()}; };
  const auto stream = [&] { return StreamId{id()}; };
  const auto event = [&] { return EventId{id()}; };
  const auto memory = [&] { return static_cast<MemoryKind>(random.below(3)); };
  const auto address = [&] { return random.below(16) << random.below(48); };
  const auto bytes = [&] { return random.below(1 << 20) >> random.below(20); };
  const auto range = [&] {
    const uint64_t begin = address();
    return Range{begin, bytes()};
  };
  switch (random.below(22)) {
    case 0:
      return CreateContext{context()};
    case 1:
      return DestroyContext{context()};
    case 2:
      return CreateStream{stream(), context(), static_cast<StreamKind>(random.below(3))};
    case 3:
      return DestroyStream{stream()};
    case 4:
      return CreateEvent{event()};
    case 5:
      return DestroyEvent{event()};
    case 6:
      return AllocateHost{range(), memory()};
    case 7:
      return FreeHost{address()};
    case 8:
      return AllocateDevice{context(), address(), bytes()};
    case 9:
      return FreeDevice{address()};
    case 10:
      return WriteHost{range()};
    case 11:
      return ReadHost{range()};
    case 12:
      return Copy{stream(), Direction::to_device, range(), address(), memory(), CallKind::async};
    case 13:
      return Copy{stream(), Direction::to_host, range(), address(), memory(), CallKind::sync};
    case 14:
      return CopyOnDevice{stream(), address(), address(), bytes()};
    case 15:
      return Launch{stream(), Duration(random.below(1'000'000))};
    case 16:
      return RecordEvent{event(), stream()};
    case 17:
      return WaitEvent{stream(), event()};
    case 18:
      return SyncEvent{event()};
    case 19:
      return SyncStream{stream()};
    case 20:
      return SyncContext{context()};
    default:
      return random.chance(0.5) ? Action(QueryEvent{event()}) : QueryStream{stream()};
  }
}

// Draws until `length` operations have passed the checker.
inline Program arbitrary_program(uint64_t seed, size_t length) {
  SeededRandom random(seed);
  ProgramChecker checker;
  Program program;
  Duration now{0};
  while (program.size() < length) {
    Operation operation;
    operation.thread = ThreadId{static_cast<uint32_t>(random.below(3))};
    if (random.chance(0.5)) operation.think = Duration(random.below(10'000));
    if (random.chance(0.5)) operation.at = Instant(now += Duration(random.below(1000)));
    operation.action = arbitrary_action(random);
    if (checker.check(operation)) program.push_back(std::move(operation));
  }
  return program;
}

}  // namespace sealane::workload
