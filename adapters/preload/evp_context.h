// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One EVP context of the driver's: what libcrypto holds in it (gcm_state.h), the message our engine
// answers with, and the libcrypto beneath. Each call is forwarded, answered or refused as the state
// says. At the first byte of a message libcrypto is asked whether it is where the state says, and
// has our key (held_key.h), and its IV is burnt (used_iv.h); from then on it refuses, so that
// refusals are forwarded. While answers are verified, libcrypto makes every call too and is
// believed: only one answer is ever seen, because a second ciphertext under the same IV would give
// both away.
//
// Used by one thread at a time, as its context is; the table of contexts is thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gcm_state.h"
#include "held_key.h"
#include "libcrypto.h"
#include "serve/messages.h"

namespace sealane::preload {

// The call as libcrypto would be made it, with other memory perhaps. Does not outlive the call.
class Forward {
 public:
  template <typename Call>
  Forward(const Call& call)  // NOLINT(google-explicit-constructor): as a lambda would be passed
      : call_(&call), invoke_([](const void* to, const Byte* in, Byte* out) {
          return (*static_cast<const Call*>(to))(in, out);
        }) {}
  int operator()(const Byte* in, Byte* out) const { return invoke_(call_, in, out); }

 private:
  const void* call_;
  int (*invoke_)(const void*, const Byte*, Byte*);
};

// What a call returns when it did what was asked, and when not.
struct Codes {
  int good = 1;
  int bad = 0;
  bool accepted(int result) const { return result > bad; }
};

class EvpContext {
 public:
  EvpContext(Context* context, const Libcrypto& libcrypto)
      : context_(context), libcrypto_(libcrypto), held_key_(libcrypto) {}
  ~EvpContext();
  EvpContext(const EvpContext&) = delete;
  EvpContext& operator=(const EvpContext&) = delete;

  const Libcrypto& libcrypto() const { return libcrypto_; }
  bool is_gcm() const { return gcm_; }
  bool sealing() const { return state_.sealing(); }

  // Before and after a key, an IV, a cipher, parameters, in any combination.
  struct InitCall {
    const Cipher* cipher;
    const Byte* key;
    const Byte* iv;
    const Parameter* parameters;
  };
  void before_init(const InitCall& call);
  void after_init(const InitCall& call, bool accepted);

  // After a call with a key that we do not see, and no cipher. `new_message`: it has set an IV.
  void after_unseen_key(bool new_message);

  // Bytes; additional data if `out` is null. Not the end, so `in` is not null.
  int update(Codes codes, const Byte* in, Byte* out, size_t bytes, const Forward& forward,
             WorkerPool* pool);
  int final(Codes codes, const Forward& forward);
  // The same by EVP_Cipher, which takes no bytes for bytes, and does not ask which way. A message
  // that begins so is libcrypto's.
  int cipher(Codes codes, const Byte* in, Byte* out, size_t bytes, const Forward& forward,
             WorkerPool* pool);

  int control(int type, int size, void* data);
  int get_parameters(Parameter* list);
  int set_parameters(const Parameter* list);
  int tag_length() const;

  // Of a copy that libcrypto is about to make.
  std::shared_ptr<EvpContext> copied();
  void is_now(Context* context) { context_ = context; }
  void give_up();

 private:
  GcmState::Facts facts(bool all) const;
  void take_key(const InitCall& call);
  bool able() const;
  void check_iv();
  bool take_over();
  bool has_our_key();
  bool still_ours();
  int additional(Codes codes, const Byte* in, size_t bytes, const Forward& forward);
  int verified(Codes codes, const Byte* in, Byte* out, size_t bytes, const Forward& forward);
  int refuse(Codes codes, const Byte* in, Byte* out, const Forward& forward);
  int final_verified(Codes codes, const Tag& mine, const Forward& forward);
  void distrust();
  void apply(const Parameter* list, const Parameter& one);
  void apply_refused(const Parameter* list);
  int refuse_tag();
  std::optional<Tag> libcryptos_tag() const;
  bool watches_tag() const;
  void note_libcryptos_tag();
  void see_unseen_end();
  std::optional<bool> gives_both() const;
  void hand_over_tag();

  Context* context_;
  const Libcrypto& libcrypto_;
  GcmState state_;
  serve::Message message_;
  serve::KnownKey key_;
  HeldKey held_key_;
  bool gcm_ = false;
  bool told_ = false;        // whoever watches hears of this message
  bool both_ = false;        // libcrypto computes this message too, and is compared
  bool burnt_ = false;       // the IV of this message
  bool tag_noted_ = false;   // since a message of ours began: libcrypto's own
  bool burns_ = false;       // libcrypto refuses a burnt IV
  bool tag_unread_ = false;  // libcrypto made it, and we did not look
  std::optional<Tag> noted_tag_;
  std::vector<uint8_t> input_, expected_, ours_;  // of a message that both compute
};

// What is taken out goes without the lock: libcrypto is called then, and may call the driver.
class EvpContexts {
 public:
  std::shared_ptr<EvpContext> find(const void* context) {
    if (count_.load(std::memory_order_relaxed) == 0) return nullptr;
    Shard& shard = shard_of(context);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.contexts.find(context);
    return found != shard.contexts.end() ? found->second : nullptr;
  }
  void put(const void* context, std::shared_ptr<EvpContext> made) {
    Shard& shard = shard_of(context);
    const std::lock_guard lock(shard.mutex);
    auto& slot = shard.contexts[context];
    if (!slot) count_.fetch_add(1);
    slot.swap(made);
  }
  void drop(const void* context) {
    if (count_.load(std::memory_order_relaxed) == 0) return;
    Shard& shard = shard_of(context);
    decltype(shard.contexts)::node_type dropped;
    const std::lock_guard lock(shard.mutex);
    dropped = shard.contexts.extract(context);
    if (!dropped.empty()) count_.fetch_sub(1);
  }

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<const void*, std::shared_ptr<EvpContext>> contexts;
  };
  static constexpr size_t kShards = 16;
  Shard& shard_of(const void* context) {
    return shards_[reinterpret_cast<uintptr_t>(context) / 64 % kShards];
  }

  std::atomic<size_t> count_{0};
  Shard shards_[kShards];
};

}  // namespace sealane::preload
