// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The program's streams that have had a carried copy, found by their handles; what else goes into
// them, or may be going now, noted in a word until it matters; and which streams are being
// captured. Knows how CUDA names default streams. Thread-safe; nothing is decided here.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "serve/gpu_driver.h"
#include "serve/stream_marks.h"
#include "serve/under_way.h"

namespace sealane::serve {

class ProgramStreams {
 public:
  explicit ProgramStreams(GpuDriver& driver) : driver_(driver) {}

  StreamPointer get(StreamHandle handle);  // nullptr: the driver does not know it
  // Around a call of the program that puts something into a stream. The driver may run that before
  // its call is back, so it counts as long as the call lasts. What the call has put there counts
  // afterwards, too: a note from before it would be gone with the first copy of another thread.
  class Entering {
   public:
    Entering(ProgramStreams& streams, StreamHandle handle);
    ~Entering();
    Entering(const Entering&) = delete;
    Entering& operator=(const Entering&) = delete;

   private:
    ProgramStreams& streams_;
    const bool legacy_;
    const std::optional<uint64_t> key_;  // nothing: no such stream, or the legacy one
    std::atomic<uint32_t>& entering_;
  };
  // Whether something else is in a stream, or may be, since this was asked last.
  static bool take_touched(Stream& stream);
  uint64_t legacy_epoch();  // grows with what goes into the legacy stream

  // The driver is about to destroy a stream, or a context with all it has: nobody finds them from
  // now on, though another thread may have one with this handle before we hear how it went. Then
  // one of the three that follow.
  struct Left {
    ContextHandle context = nullptr;  // that goes; nullptr: one stream does
    std::vector<std::pair<uint64_t, StreamPointer>> streams;
    std::vector<std::pair<uint64_t, ContextHandle>> capturing;
    bool ends_captures = false;  // there are no others
  };
  Left leave_stream(StreamHandle handle);
  Left leave_context(ContextHandle context);
  bool stay(const Left& left);  // true: there are captures again
  void forget_context(const Left& left);
  // A stream is gone for the program only: what is in it goes on, and may wait for a gate. So it is
  // kept until the event that was put behind all that has been reached, or its context is gone.
  void mark_end(const StreamPointer& stream, const EventPool::LeasePointer& end);
  void drop_ended();

  // True: the first of all begins to be captured, or the last has ended.
  bool set_capturing(StreamHandle handle, bool now);
  bool any_capturing() const { return captures_.load(std::memory_order_relaxed) != 0; }

  // One at a time, while no call puts anything into it; those that are kept, too.
  template <typename Visit>
  void each(Visit&& visit) {
    const std::shared_lock lock(mutex_);
    for (const auto& [key, stream] : streams_) {
      const std::lock_guard held(stream->mutex);
      visit(*stream);
    }
    for (const Ended& one : ended_) {
      const std::lock_guard held(one.stream->mutex);
      visit(*one.stream);
    }
  }

 private:
  struct Ended {
    StreamPointer stream;
    EventPool::LeasePointer end;          // nullptr: not yet, or it could not be put
    ContextHandle leaves_with = nullptr;  // its context is about to go, and the event with it
  };

  template <typename Goes>
  void take_captures(Left& left, Goes&& goes);
  std::optional<uint64_t> key_of(StreamHandle stream) const;  // nothing: no such stream
  std::atomic<uint32_t>& entering(uint64_t key) { return entering_[key * kOdd >> kShift]; }

  // Calls under way that put something into streams. Also of streams that no copy was carried for,
  // so found without a map; where two streams share a count, copies of both begin more runs.
  static constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  static constexpr int kShift = 64 - 10;
  std::array<std::atomic<uint32_t>, size_t{1} << (64 - kShift)> entering_{};
  std::atomic<uint32_t> entering_legacy_{0};

  GpuDriver& driver_;
  std::shared_mutex mutex_;
  std::unordered_map<uint64_t, StreamPointer> streams_;
  std::vector<Ended> ended_;
  std::mutex asking_;  // whether ends are reached: no context goes meanwhile. Before mutex_
  std::atomic<StreamKey> made_{0};
  std::atomic<uint64_t> legacy_epoch_{0};  // counts what went into the legacy stream
  std::mutex captures_mutex_;
  std::unordered_map<uint64_t, ContextHandle> capturing_;  // whose they are
  std::atomic<size_t> captures_{0};
};

}  // namespace sealane::serve
