// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane record`: the program as a trace (docs/trace-format.md, version 1), written while it
// runs.
//
// What it writes is valid whatever it is told and in which order: an object nobody saw being made
// is made when it is first used, and memory handed out again while it still counts as allocated is
// freed first (the report of the free may be a moment late). Calls that failed are left out.
//
//   think time     from the return of a thread's call, its recording included, to its next call
//   kernel time    told later, behind the kernel: lines wait for it, in order
//   host writes    seen by page guards on the sources of copies, told right before the copy; memory
//                  that cannot be guarded shows no writes
//
// Times are device time, as in stats.h. Thread-safe: one lock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/time.h"
#include "serve/events.h"
#include "watch/output.h"
#include "watch/source_watch.h"

namespace sealane::serve {

struct RecorderOptions {
  std::string path;
  const Clock* clock = nullptr;    // of the events
  double (*dilation)() = nullptr;  // as in StatsOptions
  bool host_writes = true;
};

class Recorder final : public EventSink {
 public:
  explicit Recorder(RecorderOptions options) : options_(std::move(options)), file_(options_.path) {}

  void handle(const Event& event) noexcept override;
  void finish() noexcept override;

 private:
  using Handle = uint64_t;
  struct Stream {
    uint32_t number = 0;
    Handle context = 0;
  };
  struct DeviceBlock {
    uint64_t bytes = 0;
    Handle context = 0;
  };
  struct Thread {
    uint32_t number = 0;
    std::optional<Instant> returned;
    uint64_t latest_ns = 0;
  };
  // A line that may wait for a kernel's time, which goes between its two parts.
  struct Line {
    std::string text;
    std::string rest;
    uint64_t launch = 0;  // 0: complete
  };
  static constexpr size_t kLinesHeldMax = 1 << 16;

  void record(const Event& event);
  void copy(const Event& event);
  void call(const Event& event);
  void stream_call(const Event& event);
  void event_call(const Event& event);
  void memory(const Event& event);
  void wait(const Event& event);
  void allocate_device(const Event& event);
  void allocate_host(const Event& event);
  void destroy_context(const Event& event);
  void launch_took(uint64_t launch, uint64_t ns);
  void note_write(const Event& event);

  std::string context(Handle handle);
  std::string stream(const Event& event);
  std::string event_object(Handle handle);

  void line(std::string text, const Event& event);
  void implied(const std::string& text);
  void release();
  std::string times(const Event& event);
  uint64_t nanoseconds(Duration duration) const;

  const RecorderOptions options_;
  std::mutex mutex_;
  StreamFile file_;
  bool started_ = false;
  Thread* thread_ = nullptr;  // of the event being recorded
  std::unordered_map<uint32_t, Thread> threads_;
  std::unordered_map<Handle, uint32_t> contexts_;
  std::map<std::pair<Handle, Handle>, Stream> streams_;  // handle; context (or thread) of defaults
  std::unordered_map<Handle, uint32_t> events_;
  std::map<uint64_t, DeviceBlock> device_;
  std::map<uint64_t, uint64_t> host_;
  uint32_t contexts_made_ = 0;
  uint32_t streams_made_ = 0;
  uint32_t events_made_ = 0;
  std::deque<Line> held_;
  uint64_t untimed_launches_ = 0;
  SourceWatch sources_;
};

}  // namespace sealane::serve
