// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One simulated run: the application's threads make their calls, faults happen between them, and
// events are handled until everybody has returned or nothing can happen any more.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "sim/driver_path.h"
#include "sim/patience.h"
#include "sim/runtime.h"
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
  struct Thread {
    std::vector<uint32_t> operations;  // of the program, in order
    size_t next = 0;
    bool asleep = false;
    bool woken = false;              // while its call was still being made
    bool thought = false;            // the time before the next call has passed
    uint32_t context = 0;            // of the stream it last had to do with
    Instant called{};                // when its call was made
    Duration cost{0};                // of the call it is in, beyond waiting
    std::vector<CallId> covers;      // what the synchronising call it is in covers
    std::vector<uint32_t> flags;     // that hold a stream until it raises them
    uint32_t batched = 0;            // copies that are one call
    std::deque<ProgramCopy> passed;  //   and were passed: the driver does them one by one
  };
  enum class Progress : uint8_t { done, asleep, again };

  void handle(const SimEvent& event);
  void begin();
  void step(uint32_t thread);
  void write_more(Thread& thread);
  void finish_call(uint32_t thread);
  Progress perform(uint32_t thread, const workload::Operation& operation);
  Progress charge_call(uint32_t thread);
  Progress copy(uint32_t thread, const workload::Copy& copy);
  Progress copy_batch(uint32_t thread, uint32_t count);
  ProgramCopy program_copy(uint32_t thread, const workload::Copy& copy);
  Progress pass(uint32_t thread, workload::StreamId stream, const ProgramCopy& copy);
  Progress capture(uint32_t thread, const workload::CaptureStream& asked);
  bool captured(const workload::Action& action);
  Progress work(uint32_t thread, const workload::StreamWork& asked);
  Progress hold(uint32_t thread, const workload::HoldStream& asked);
  void raise_flags(uint32_t thread);
  void do_work(const Item& item);
  Progress launch(const ProgramCall& call, uint32_t thread);
  Progress fall_asleep(uint32_t thread);
  void sync_stream(uint32_t thread, uint32_t stream);
  void sync_event(uint32_t thread, uint32_t event);
  void sync_all(uint32_t thread, uint32_t context);
  void write(uint32_t thread, const Range& range);
  Progress free_host(uint32_t thread, uint64_t address);
  void follow_script(uint32_t operation);
  void inject_faults(uint32_t thread);
  bool being_copied(const Range& range) const;
  void enter_context(Thread& thread, const workload::Action& action);
  bool failed(uint32_t context) const;
  void crash(uint32_t context);
  bool drained(uint32_t context) const;
  uint32_t key(workload::StreamId stream);
  Outcome outcome() const;

  World world_;
  std::optional<Runtime> runtime_;    // carries what Copies says
  std::optional<DriverPath> driver_;  // does the rest
  workload::Program written_;         // what the feed wants next
  workload::Feed* feed_ = nullptr;
  const workload::Program& program_;
  Patience patience_;
  uint64_t retries_ = 0;
  std::multimap<uint64_t, ScriptedFault> script_;  // what is left of it, by operation
  std::vector<Thread> threads_;
  std::map<workload::StreamId, uint32_t> streams_;  // to small numbers
  std::map<workload::StreamId, uint32_t> contexts_;
  std::map<workload::EventId, CallId> recorded_;     // the latest record
  std::map<workload::StreamId, Duration> captures_;  // what the graph will take
  std::map<uint64_t, uint64_t> allocated_;
  uint32_t running_ = 0;
  Instant ended_{};
};

}  // namespace sealane::sim
