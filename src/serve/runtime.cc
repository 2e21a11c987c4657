// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/runtime.h"

#include <algorithm>

#include "base/log.h"
#include "os/pace.h"
#include "serve/options.h"

namespace sealane::serve {
namespace {

constexpr unsigned kWorkersMax = 64;
constexpr unsigned kModelledWorkers = 8;  // a modelled host has the cores this machine lacks

// A number that is not to be worked out, 0 if it is.
unsigned fixed_workers() {
  if (options().workers > 0) return std::min(options().workers, kWorkersMax);
  return pace().dilation != nullptr && pace().dilation() > 0 ? kModelledWorkers : 0;
}

CopiesOptions copies_options(const SpeculationChoice& speculation) {
  CopiesOptions made;
  made.async = options().async;
  made.early_bytes_max = kEarlyBytesMax;
  made.early_in_place = options().early;
  if (speculation.policy != nullptr) {
    made.bulk_bytes_min = speculation.policy->bulk_bytes_min;
    made.threads.bulk = kBulkThreads;
  }
  if (options().coalesce) made.costs = crossing_costs();
  return made;
}

}  // namespace

// Never deleted: threads of ours and exit handlers of the program use it to the end.
void Runtime::start(GpuDriver& driver) { process().runtime.store(new Runtime(driver)); }

// The caller of a loop takes part in it.
Runtime::Runtime(GpuDriver& driver)
    : pool_(fixed_workers() > 0 ? WorkerPool(fixed_workers() - 1)
                                : WorkerPool(WorkerQuota::make())),
      speculation_(choose_speculation(options(), pool_.size())),
      under_way_(copies_options(speculation_)),
      memory_(pool_, options().staging_bytes_max),
      streams_(driver),
      crew_(driver, under_way_, memory_, pool_, speculation_),
      intake_(driver, under_way_, memory_, streams_, crew_) {
  SEALANE_LOG(info, "sealing ahead %s", serve::describe(speculation_).c_str());
}

void Runtime::set_capturing(StreamHandle handle, bool now) {
  if (streams_.set_capturing(handle, now)) tell_capture(now);
}

void Runtime::tell_capture(bool begins) {
  const std::lock_guard lock(under_way_.mutex);
  under_way_.copies.handle_capture(begins);
}

ProgramStreams::Left Runtime::leave_stream(StreamHandle handle) {
  ProgramStreams::Left left = streams_.leave_stream(handle);
  if (left.ends_captures) tell_capture(false);
  if (!left.capturing.empty()) return left;  // the event would be in the graph
  for (const auto& [key, stream] : left.streams) {
    streams_.mark_end(stream, intake_.mark(stream->context, handle));
  }
  return left;
}

void Runtime::forget_stream(const ProgramStreams::Left& left) {
  for (const auto& [key, stream] : left.streams) under_way_.forget_stream(stream->key);
  streams_.drop_ended();
}

void Runtime::stay(const ProgramStreams::Left& left) {
  if (streams_.stay(left)) tell_capture(true);
}

Runtime::LeftContext Runtime::leave_context(ContextHandle context) {
  drain(context);
  LeftContext left;
  left.memory = memory_.take_out(context);
  for (const auto& block : left.memory.device) drain(block.range);
  for (const auto& block : left.memory.host) drain(block.range);
  left.streams = leave_streams(context);
  intake_.leave_context(context);
  return left;
}

ProgramStreams::Left Runtime::leave_streams(ContextHandle context) {
  ProgramStreams::Left left = streams_.leave_context(context);
  if (left.ends_captures) tell_capture(false);
  return left;
}

void Runtime::stay_in_context(ContextHandle context, const LeftContext& left) {
  for (const auto& block : left.memory.device) put_back(block);
  for (const auto& block : left.memory.host) put_back(block);
  stay(left.streams);
  intake_.stay_in_context(context);
}

void Runtime::forget_context(ContextHandle context, const LeftContext& left) {
  streams_.forget_context(left.streams);
  for (const auto& [key, stream] : left.streams.streams) under_way_.forget_stream(stream->key);
  memory_.take_out(context);  // what was made in it meanwhile
  under_way_.forget_context(context);
  intake_.forget_context(context);
}

void Runtime::forget_context(ContextHandle context) {
  forget_context(context, {.memory = {}, .streams = leave_streams(context)});
}

void Runtime::drain_others(const Range& device, StreamHandle stream) {
  const StreamPointer own = streams_.get(stream);
  under_way_.drain(device, own ? own->key : 0);
}

void Runtime::add_host_memory(const Range& range, const HostBlock& block) {
  memory_.host().add(range, block);
  crew_.add_host_memory(range);
}

}  // namespace sealane::serve
