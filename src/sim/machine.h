// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One simulated run: the application's threads make their calls, faults happen between them, and
// events are handled until everybody has returned or nothing can happen any more.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/faults.h"
#include "sim/patience.h"
#include "sim/program_calls.h"
#include "sim/world.h"
#include "workload/operation.h"

namespace sealane::sim {

class Machine final : public Threads {
 public:
  Machine(const workload::Program& program, const Setup& setup);
  Machine(workload::Feed& feed, const Setup& setup);

  Outcome run();
  void wake(uint32_t thread) override;
  void wake_all(uint32_t context) override;

 private:
  void handle(const SimEvent& event);
  void begin();
  void step(uint32_t thread);
  void write_more(Caller& thread);
  void finish_call(uint32_t thread);
  bool being_copied(const Range& range) const;
  Outcome outcome() const;

  World world_;
  std::optional<Runtime> runtime_;    // carries what Copies says
  std::optional<DriverPath> driver_;  // does the rest
  std::optional<ProgramCalls> calls_;
  std::optional<FaultInjector> faults_;
  workload::Program written_;  // what the feed wants next
  workload::Feed* feed_ = nullptr;
  const workload::Program& program_;
  Patience patience_;
  uint64_t retries_ = 0;
  std::vector<Caller> threads_;
  uint32_t running_ = 0;
  Instant ended_{};
};

}  // namespace sealane::sim
