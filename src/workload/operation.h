// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A GPU program as what it asks for: one Operation per call, in the order the calls were made. The
// simulator replays it, `record` writes it, trace files (trace.h) store it, patterns.h makes it.
//
// Time is told by what does not depend on the policy: `think` is the host time a thread spends
// between the return of its previous call and this one, `Launch::run_time` what the kernel takes on
// the device with CC off. How long calls block is the simulator's to find out.
//
// Addresses are numbers. Host and device addresses are two spaces.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/time.h"
#include "core/copy.h"

namespace sealane::workload {

enum class ThreadId : uint32_t {};
enum class ContextId : uint32_t {};
enum class StreamId : uint32_t {};  // unique in the program; a stream belongs to one context
enum class EventId : uint32_t {};

// How a stream relates to others of its context, as in CUDA.
enum class StreamKind : uint8_t {
  legacy,  // the default stream: waits for the blocking ones, and they for it
  blocking,
  non_blocking,
};

enum class CallKind : uint8_t {
  sync,   // the call returns when the work is done
  async,  // the call may return at once
};

struct CreateContext {
  ContextId context;
  bool operator==(const CreateContext&) const = default;
};
struct DestroyContext {
  ContextId context;
  bool operator==(const DestroyContext&) const = default;
};
struct CreateStream {
  StreamId stream;
  ContextId context;
  StreamKind kind;
  bool operator==(const CreateStream&) const = default;
};
struct DestroyStream {
  StreamId stream;
  bool operator==(const DestroyStream&) const = default;
};
struct CreateEvent {
  EventId event;
  bool operator==(const CreateEvent&) const = default;
};
struct DestroyEvent {
  EventId event;
  bool operator==(const DestroyEvent&) const = default;
};

struct AllocateHost {
  Range range;
  MemoryKind memory;
  bool operator==(const AllocateHost&) const = default;
};
struct FreeHost {
  uint64_t address;
  bool operator==(const FreeHost&) const = default;
};
struct AllocateDevice {
  ContextId context;
  uint64_t address;
  uint64_t bytes;
  bool operator==(const AllocateDevice&) const = default;
};
struct FreeDevice {
  uint64_t address;
  bool operator==(const FreeDevice&) const = default;
};

// The program itself writes or reads host memory.
struct WriteHost {
  Range range;
  bool operator==(const WriteHost&) const = default;
};
struct ReadHost {
  Range range;
  bool operator==(const ReadHost&) const = default;
};

// Of one copy or access: more than any machine has, and few enough to add up.
constexpr uint64_t kRangeBytesMax = 10'000'000'000'000;

struct Copy {
  StreamId stream;
  Direction direction;
  Range host;
  uint64_t device;
  MemoryKind memory;
  CallKind call;
  bool operator==(const Copy&) const = default;
};
struct CopyOnDevice {
  StreamId stream;
  uint64_t to;
  uint64_t from;
  uint64_t bytes;
  bool operator==(const CopyOnDevice&) const = default;
};
struct Launch {
  StreamId stream;
  Duration run_time;
  bool operator==(const Launch&) const = default;
};

// Work of a stream that matters to host memory when its turn comes.
enum class WorkKind : uint8_t {
  host_function,  // the CPU writes the range
  device_write,   // the device does, past everything that watches the CPU's writes
};
struct StreamWork {
  StreamId stream;
  WorkKind kind;
  Range host;
  bool operator==(const StreamWork&) const = default;
};
// The stream waits until the host raises the flag.
struct HoldStream {
  StreamId stream;
  uint32_t flag;
  bool operator==(const HoldStream&) const = default;
};
struct RaiseFlag {
  uint32_t flag;
  bool operator==(const RaiseFlag&) const = default;
};
// The next copies of this thread, of one stream, are one call and have no order among them.
struct BatchCopies {
  uint32_t copies;
  bool operator==(const BatchCopies&) const = default;
};
// What is put into the stream becomes a graph; at the end it is launched there, once.
struct CaptureStream {
  StreamId stream;
  bool begins;
  bool operator==(const CaptureStream&) const = default;
};

struct RecordEvent {
  EventId event;
  StreamId stream;
  bool operator==(const RecordEvent&) const = default;
};
struct WaitEvent {
  StreamId stream;
  EventId event;
  bool operator==(const WaitEvent&) const = default;
};

struct SyncEvent {
  EventId event;
  bool operator==(const SyncEvent&) const = default;
};
struct SyncStream {
  StreamId stream;
  bool operator==(const SyncStream&) const = default;
};
struct SyncContext {
  ContextId context;
  bool operator==(const SyncContext&) const = default;
};
struct QueryEvent {
  EventId event;
  bool operator==(const QueryEvent&) const = default;
};
struct QueryStream {
  StreamId stream;
  bool operator==(const QueryStream&) const = default;
};

using Action = std::variant<CreateContext, DestroyContext, CreateStream, DestroyStream, CreateEvent,
                            DestroyEvent, AllocateHost, FreeHost, AllocateDevice, FreeDevice,
                            WriteHost, ReadHost, Copy, CopyOnDevice, Launch, RecordEvent, WaitEvent,
                            SyncEvent, SyncStream, SyncContext, QueryEvent, QueryStream, StreamWork,
                            HoldStream, RaiseFlag, BatchCopies, CaptureStream>;

struct Operation {
  ThreadId thread{1};
  Duration think{0};
  std::optional<Instant> at;  // when the call was made in a recorded run; replay does not use it
  Action action;

  bool operator==(const Operation&) const = default;
};

using Program = std::vector<Operation>;

}  // namespace sealane::workload
