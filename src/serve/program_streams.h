// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The program's streams that have had a carried copy, found by their handles; what else goes into
// them, noted in a word until it matters; and which streams are being captured. Knows how CUDA
// names default streams. Thread-safe; nothing is decided here.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

#include "serve/gpu_driver.h"
#include "serve/under_way.h"

namespace sealane::serve {

class ProgramStreams {
 public:
  explicit ProgramStreams(GpuDriver& driver) : driver_(driver) {}

  StreamPointer get(StreamHandle handle);  // nullptr: the driver does not know it
  void touch(StreamHandle handle);         // something else went into it
  uint64_t legacy_epoch() const { return legacy_epoch_.load(std::memory_order_relaxed); }
  StreamPointer forget(StreamHandle handle);  // the program destroyed it

  // True: the first of all begins to be captured, or the last has ended.
  bool set_capturing(StreamHandle handle, bool now);
  bool forget_context(ContextHandle context);  // and all its streams, captured or not
  bool any_capturing() const { return captures_.load(std::memory_order_relaxed) != 0; }

  // One at a time, while no call puts anything into it.
  template <typename Visit>
  void each(Visit&& visit) {
    const std::shared_lock lock(mutex_);
    for (const auto& [key, stream] : streams_) {
      const std::lock_guard held(stream->mutex);
      visit(*stream);
    }
  }

 private:
  std::optional<uint64_t> key_of(StreamHandle stream) const;  // nothing: no such stream

  GpuDriver& driver_;
  std::shared_mutex mutex_;
  std::unordered_map<uint64_t, StreamPointer> streams_;
  std::atomic<StreamKey> made_{0};
  std::atomic<uint64_t> legacy_epoch_{0};  // counts what went into the legacy stream
  std::mutex captures_mutex_;
  std::unordered_map<uint64_t, ContextHandle> capturing_;  // whose they are
  std::atomic<size_t> captures_{0};
};

}  // namespace sealane::serve
