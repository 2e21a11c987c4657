// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The program of a scenario, operation by operation. Buffers, streams and events have names and are
// made when they are first used, so that a file need not say so.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/time.h"
#include "core/copy.h"
#include "workload/operation.h"

namespace sealane::test {

class ProgramBuilder {
 public:
  // A host buffer and its place on the device.
  struct Buffer {
    uint64_t host;
    uint64_t device;
    uint64_t bytes;
    MemoryKind memory = MemoryKind::pinned;
    bool allocated = false;
    bool on_device = false;
  };

  explicit ProgramBuilder(workload::Program& program);

  size_t size() const { return program_.size(); }

  // --- whose operations come next, and after what
  void set_thread(workload::ThreadId thread) { thread_ = thread; }
  void think(Duration time) { think_ += time; }
  void add(workload::Action action);

  // --- things with names
  Buffer* find_buffer(const std::string& name);                 // nullptr: there is none
  Buffer& add_buffer(const std::string& name, uint64_t bytes);  // not yet allocated
  void allocate(Buffer& buffer);                                // if it is not
  workload::StreamId stream(const std::string& name);           // new or not
  workload::EventId event(const std::string& name);             // new or not
  bool has_event(const std::string& name) const { return events_.contains(name); }

  static constexpr workload::ContextId kContext{1};

 private:
  workload::Program& program_;
  workload::ThreadId thread_{1};
  Duration think_{0};
  std::map<std::string, Buffer> buffers_;
  std::map<std::string, workload::StreamId> streams_;
  std::map<std::string, workload::EventId> events_;
};

}  // namespace sealane::test
