// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The driver's EVP contexts, by address. A Shadow is used by one thread at a time, as its context
// is; the table is thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "live/serve/messages.h"

namespace sealane::preload {

struct Shadow {
  serve::Message message;
  bool answers = false;    // our engine answers; else we only watch
  bool begun = false;      // bytes have come since the IV: ours to finish
  bool finished = false;   // the tag is known
  bool has_tag = false;    // opening: the tag to be compared with
  bool verifying = false;  // libcrypto computes too, and is compared
  Tag tag{};
  std::vector<uint8_t> input;     // verifying: a private copy
  std::vector<uint8_t> expected;  // verifying: libcrypto's output
  std::vector<uint8_t> ours;      // verifying: what is compared with it
};

class Shadows {
 public:
  std::shared_ptr<Shadow> find(const void* context) {
    if (count_.load(std::memory_order_relaxed) == 0) return nullptr;
    Shard& shard = shard_of(context);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.shadows.find(context);
    return found != shard.shadows.end() ? found->second : nullptr;
  }
  std::shared_ptr<Shadow> make(const void* context) {
    Shard& shard = shard_of(context);
    const std::lock_guard lock(shard.mutex);
    auto& slot = shard.shadows[context];
    if (!slot) count_.fetch_add(1);
    slot = std::make_shared<Shadow>();
    return slot;
  }
  void drop(const void* context) {
    if (count_.load(std::memory_order_relaxed) == 0) return;
    Shard& shard = shard_of(context);
    const std::lock_guard lock(shard.mutex);
    if (shard.shadows.erase(context) != 0) count_.fetch_sub(1);
  }

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<const void*, std::shared_ptr<Shadow>> shadows;
  };
  static constexpr size_t kShards = 16;
  Shard& shard_of(const void* context) {
    return shards_[reinterpret_cast<uintptr_t>(context) / 64 % kShards];
  }

  std::atomic<size_t> count_{0};
  Shard shards_[kShards];
};

}  // namespace sealane::preload
