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
  if (!streams_.set_capturing(handle, now)) return;
  const std::lock_guard lock(under_way_.mutex);
  under_way_.copies.handle_capture(now);
}

void Runtime::forget_stream(StreamHandle handle) {
  set_capturing(handle, false);
  if (const StreamPointer gone = streams_.forget(handle)) under_way_.forget_stream(gone->key);
}

void Runtime::leave_context(ContextHandle context) {
  drain(context);
  intake_.leave_context(context);
}

void Runtime::forget_context(ContextHandle context) {
  streams_.forget_context(context);
  memory_.forget_context(context);
  under_way_.forget_context(context);
  intake_.forget_context(context);
}

void Runtime::add_host_memory(const Range& range, const HostBlock& block) {
  memory_.host().add(range, block);
  crew_.add_host_memory(range);
}

}  // namespace sealane::serve
