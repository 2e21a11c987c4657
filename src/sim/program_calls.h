// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What each call of the program means: which stream and which memory it names, what the oracle is
// told of it, and whether the runtime or the driver does it.
#pragma once

#include <cstdint>
#include <map>

#include "sim/caller.h"
#include "sim/driver_path.h"
#include "sim/runtime.h"
#include "sim/world.h"
#include "workload/operation.h"

namespace sealane::sim {

class ProgramCalls {
 public:
  ProgramCalls(World& world, Runtime& runtime, DriverPath& driver, const workload::Program& program)
      : world_(world), runtime_(runtime), driver_(driver), program_(program) {}

  // The caller has to do with the context of this from now on.
  void enter_context(Caller& caller, const workload::Action& action) const;
  // Every call of the program in it returns an error.
  bool failed(uint32_t context) const {
    return world_.device.failed(context) || runtime_.failed(context);
  }
  Progress perform(Caller& caller, const workload::Operation& operation);
  void write(Caller& caller, const Range& range);
  void do_work(const Item& item);    // the turn of work that writes host memory has come
  void raise_flags(Caller& caller);  // before the thread waits for anything

 private:
  Progress charge_call(Caller& caller);
  Progress copy(Caller& caller, const workload::Copy& copy);
  Progress copy_batch(Caller& caller, uint32_t count);
  ProgramCopy program_copy(const Caller& caller, const workload::Copy& copy, uint64_t batch = 0);
  Progress pass(Caller& caller, workload::StreamId stream, const ProgramCopy& copy);
  Progress capture(Caller& caller, const workload::CaptureStream& asked);
  bool captured(const workload::Action& action);
  Progress hold(Caller& caller, const workload::HoldStream& asked);
  Progress launch(Caller& caller, workload::StreamId stream, ProgramCall call,
                  Oracle::CallKind kind = Oracle::CallKind::kernel);
  Progress fall_asleep(Caller& caller);
  Progress sync_stream(Caller& caller, uint32_t stream);
  Progress sync_event(Caller& caller, workload::EventId event);
  Progress sync_all(Caller& caller, uint32_t context);
  Progress free_host(Caller& caller, uint64_t address);
  bool drained(uint32_t context) const;
  uint32_t key(workload::StreamId stream);

  World& world_;
  Runtime& runtime_;
  DriverPath& driver_;
  const workload::Program& program_;
  std::map<workload::StreamId, uint32_t> streams_;  // to small numbers
  std::map<workload::StreamId, uint32_t> contexts_;
  std::map<workload::EventId, CallId> recorded_;     // the latest record
  std::map<workload::StreamId, Duration> captures_;  // what the graph will take
  std::map<uint64_t, uint64_t> allocated_;
  uint64_t batches_ = 0;
};

}  // namespace sealane::sim
