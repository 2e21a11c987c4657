// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the parts of one simulated run share: time, memory, device, oracle, randomness, and the
// record of what happened.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "base/random.h"
#include "sim/device.h"
#include "sim/event_queue.h"
#include "sim/memory.h"
#include "sim/oracle.h"
#include "sim/sim.h"
#include "sim/timeline.h"

namespace sealane::sim {

struct World {
  explicit World(const Setup& with)
      : setup(with),
        random(with.seed ^ 0x51ea1a4e),
        oracle(memory, with.slot_bytes_max),
        timeline(with.timeline_spans),
        device(events, oracle, timeline, with.hardware_queues) {}

  Instant now() const { return events.now(); }

  template <typename... Args>
  void log(fmt::format_string<Args...> format, Args&&... args) {
    if (!setup.history) return;
    if (history.size() == kHistoryLines) history.pop_front();
    const double us = static_cast<double>(now().time_since_epoch().count()) / 1e3;
    history.push_back(fmt::format("{:12.3f} us  ", us) +
                      fmt::format(format, std::forward<Args>(args)...));
  }

  uint64_t awake() const { return threads - asleep; }
  // More threads at work than cores: everybody is slower. `others` work beside the program's.
  Duration crowded(Duration work, uint64_t others) const {
    const uint64_t running = awake() + others;
    const uint64_t cores = setup.platform.host.cores;
    if (running <= cores) return work;
    return work * static_cast<int64_t>(running) / static_cast<int64_t>(cores);
  }

  static constexpr size_t kHistoryLines = 60;

  const Setup& setup;
  SeededRandom random;
  EventQueue events;
  Memory memory;
  Oracle oracle;
  Timeline timeline;
  Device device;
  Counters counters;
  std::function<void(const Range&)> cpu_writes = [](const Range&) {};  // so that guards see it
  std::optional<std::string> error;  // what every later call of the program is told
  uint32_t asleep = 0;               // threads that need no core: they wait in a call, or are done
  uint32_t threads = 1;
  std::deque<std::string> history;
};

// Who can be woken: the application's threads.
class Threads {
 public:
  virtual ~Threads() = default;
  virtual void wake(uint32_t thread) = 0;
  virtual void wake_all(uint32_t context) = 0;  // it has failed: nobody waits in it any more
};

}  // namespace sealane::sim
