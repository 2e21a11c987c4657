// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The driver's keys for as long as it uses them: a schedule for each, and a number by which others
// speak of it. A key is in use while a context holds its schedule, and a moment longer, because
// some drivers make a new context for every message. Then it is dropped, and with its last holder
// wiped (seal/secret_memory.h): after a rotation the old key is nowhere in the process.
//
// Concurrency: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/time.h"
#include "seal/key.h"
#include "seal/split_gcm.h"

namespace sealane::serve {

struct KnownKey {
  std::shared_ptr<const SplitGcm> schedule;  // nullptr if this CPU has no engine for it
  uint64_t number = 0;
};

class KnownKeys {
 public:
  static constexpr size_t kKeysMax = 64;  // both directions of every context there is room for
  static constexpr Duration kGrace = std::chrono::seconds(2);  // between two contexts of a driver

  // `fresh` tells whether it was not known.
  KnownKey know(std::span<const uint8_t, Key::kBytes> key, Instant now, bool& fresh);
  void retire(Instant now);
  void retire_sometimes(Instant now);  // cheap: looks once a second
  size_t size();

 private:
  struct Entry {
    Key key;
    KnownKey known;
    Instant used;
  };

  void retire_locked(Instant now);

  std::mutex mutex_;
  std::vector<Entry> entries_;  // latest first
  uint64_t numbers_ = 0;
  std::atomic<Instant> look_at_{Instant()};
};

// The process's: the key by now, reported if it is a new one.
KnownKey know_key(std::span<const uint8_t, Key::kBytes> key);

}  // namespace sealane::serve
