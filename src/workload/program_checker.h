// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is a sequence of operations a program at all? Contexts, streams and events exist before they are
// used and are not used after they are gone, allocations do not overlap, what is freed was
// allocated, and a thread's recorded times do not run backwards. Host memory that was never
// allocated may be used: malloc() is not recorded.
//
// Feed it one operation after the other. Memory grows with what is alive, not with the program.
// Not synchronised.
#pragma once

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/result.h"
#include "workload/operation.h"
#include "workload/total_time.h"

namespace sealane::workload {

class ProgramChecker {
 public:
  // A usage error says what is wrong with `operation`.
  Status check(const Operation& operation);

 private:
  using Allocations = std::map<uint64_t, uint64_t>;  // address to bytes

  Status check_action(const CreateContext& made);
  Status check_action(const DestroyContext& gone);
  Status check_action(const CreateStream& made);
  Status check_action(const DestroyStream& gone);
  Status check_action(const CreateEvent& made);
  Status check_action(const DestroyEvent& gone);
  Status check_action(const AllocateHost& made);
  Status check_action(const FreeHost& gone);
  Status check_action(const AllocateDevice& made);
  Status check_action(const FreeDevice& gone);
  Status check_action(const WriteHost& write) const;
  Status check_action(const ReadHost& read) const;
  Status check_action(const Copy& copy) const;
  Status check_action(const CopyOnDevice& copy) const;
  Status check_action(const Launch& launch) const { return exists(launch.stream); }
  Status check_action(const RecordEvent& record) const;
  Status check_action(const WaitEvent& wait) const;
  Status check_action(const SyncEvent& sync) const { return exists(sync.event); }
  Status check_action(const SyncStream& sync) const { return exists(sync.stream); }
  Status check_action(const SyncContext& sync) const { return exists(sync.context); }
  Status check_action(const QueryEvent& query) const { return exists(query.event); }
  Status check_action(const QueryStream& query) const { return exists(query.stream); }
  Status check_action(const StreamWork& work) const;
  Status check_action(const HoldStream& hold) const { return exists(hold.stream); }
  Status check_action(const RaiseFlag&) const { return {}; }
  Status check_action(const BatchCopies& batch) const;
  Status check_action(const CaptureStream& capture) const { return exists(capture.stream); }

  Status exists(ContextId context) const;
  Status exists(StreamId stream) const;
  Status exists(EventId event) const;

  static Status allocate(Allocations& live, uint64_t address, uint64_t bytes);
  static Status release(Allocations& live, uint64_t address);

  std::unordered_set<ContextId> contexts_;
  std::unordered_map<StreamId, ContextId> streams_;
  std::unordered_set<EventId> events_;
  std::unordered_map<ThreadId, Instant> latest_;  // recorded time of a thread's last call
  Allocations host_;
  Allocations device_;
  TotalTime time_;
};

}  // namespace sealane::workload
