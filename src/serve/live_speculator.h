// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The Speculator of one copy thread (core/pipeline/speculator.h), live: that decides all there is
// to decide, this has its lock and its slots, which workers seal (slot_sealer.h).
//
//   1. check_guards()   at the copy's turn, or with its snapshot: was the source written?
//      handle_asked()   the machine's door
//   2. await_turn()     the copy thread: until there is something, or no worker is at it
//      begin(), end()   around the driver's call
//   3. take(), give()   the driver's thread, or one it seals on: around a message of its
//   4. perform()        what the core asks for: workers seal, guards are armed, slots are wiped
//
// Thread-safe. No lock is held while bytes are sealed, copied or guarded; wiping is the exception,
// because a position may be sealed again only after it. Fails by stop(): everything is sealed when
// it is asked for. Never deleted: a message may still look at it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/pipeline/speculator.h"
#include "core/predict/predictor.h"
#include "os/worker_pool.h"
#include "serve/live_speculators.h"
#include "serve/memory.h"
#include "serve/slot_records.h"
#include "serve/slot_sealer.h"

namespace sealane::serve {

// What a failed check throws in the preload (base/check.h).
struct BrokenInvariant : std::exception {
  const char* what() const noexcept override { return "a broken invariant"; }
};

struct LiveSpeculatorOptions {
  Policy policy;
  Costs costs;
  uint64_t slot_bytes_max = 256_MiB;
  SlotBudget* budget = nullptr;  // what all lanes have together; outlives them
  bool page_guards = true;
  int device = 0;  // the lane's, for those who watch,
  int lane = 0;    // and its number there
};

class LiveSpeculator final : public Speculation, private SlotSealer::Owner {
 public:
  LiveSpeculator(WorkerPool& pool, const RangeMap<HostBlock>& host_memory,
                 const LiveSpeculatorOptions& options);
  LiveSpeculator(const LiveSpeculator&) = delete;
  LiveSpeculator& operator=(const LiveSpeculator&) = delete;

  // --- the machine's door: with its lock held; nothing here waits for a worker
  bool handle_asked(CopyId copy, const CopyCall& call, HostSide side, Instant now) override;
  void handle_turn(CopyId copy, Instant now) override;
  std::optional<WireTurn> next_turn(Instant now) override;
  void handle_over(CopyId copy, bool succeeded, Instant now) override;
  void handle_freed(const Range& host) override;
  bool reads(const Range& host) const override {
    return ask([&] { return speculator_.reads(host); });
  }
  bool stopped() const override {
    return ask([&] { return speculator_.stopped(); });
  }

  // --- the program's thread, and the copy thread
  // Before handle_asked(): nobody may write there any more until the copy is carried, or there is a
  // snapshot of it.
  void check_guards(const Range& host);
  void allocated(const Range& host);
  void freed(const Range& host);  // returns when nobody reads it any more
  // True: next_turn() has something. False: no worker is at what it would be.
  bool await_turn();
  std::optional<Instant> deadline() const {  // look() then, even if nothing else happens
    return ask([&] { return speculator_.deadline(); });
  }
  void look() {
    tell_and_do([] {});
  }
  bool begin();  // false: it is not by next_turn() that something is carried
  void end(bool succeeded);
  void settle(CopyId copy);  // returns when no worker reads its source for it any more

  // --- the driver's thread, or one it seals on
  // A message the driver is sealing. With a record: what it must become, update by update.
  struct Taken {
    bool ours = false;  // of the copy in flight: give() it back
    const uint8_t* record = nullptr;
    uint64_t record_bytes = 0;
    std::optional<Secret<GcmHash>> hash{};  // of all of the record
    bool foreseen = false;                  // sealed before it was asked for
    Iv iv{};
    uint64_t used = 0;  // bytes of the record that the driver got
  };
  // The first bytes of a message.
  Taken take(uint64_t key, const std::shared_ptr<const SplitGcm>& schedule, const Iv& iv,
             const uint8_t* in, uint64_t bytes);
  // The message is sealed, and was so long. What is left of a record must not be used any more.
  void give(const Taken& taken, uint64_t bytes);
  // Could the message be of its crossing? By the IV that comes next, or by the place it names.
  enum class Claim : uint8_t { none, by_place, by_iv };
  Claim claim(uint64_t key, const Iv& iv, const uint8_t* in) const;

  void stop();
  bool sealing() const {  // are workers at it?
    return ask([&] { return speculator_.sealing(); });
  }
  SpeculationStats stats() const {
    return ask([&] { return stats_locked(); });
  }

 private:
  template <typename Question>
  auto ask(const Question& question) const -> decltype(question()) {
    const std::lock_guard lock(mutex_);
    return question();
  }
  // Tells the core something. This is somebody else's process: should the core find itself wrong,
  // or memory run out, nothing is sealed ahead any more, and that is all.
  template <typename Work>
  auto tell(Work&& work, bool act = false) -> decltype(work()) {
    try {
      const std::lock_guard lock(mutex_);
      if constexpr (std::is_void_v<decltype(work())>) {
        work();
        if (act || speculator_.stopped()) perform_all();
      } else {
        const auto result = work();
        if (act || speculator_.stopped()) perform_all();
        return result;
      }
    } catch (const std::exception&) {
      stop();
      return decltype(work())();
    }
  }
  // And does what it asks for then.
  template <typename Work>
  auto tell_and_do(Work&& work) -> decltype(work()) {
    return tell(std::forward<Work>(work), true);
  }

  // --- with the lock held
  void perform_all();
  void perform(const SealAction& action);
  void close();
  SpeculationStats stats_locked() const;
  void tell_changes();
  // --- without it
  void await_change(uint64_t seen);
  void look_at_guards(const Range& host);
  bool handle_digested(const Range& guarded, bool news, SlotId slot) override;
  void handle_sealed(SlotId slot, Speculator::Sealed how, const SlotRecord& record) override;
  void handle_broken() override { stop(); }
  static Instant now() { return SteadyClock().now(); }

  WorkerPool& pool_;
  const RangeMap<HostBlock>& host_memory_;
  const LiveSpeculatorOptions options_;
  const uint64_t number_;  // in the order they were made
  std::unique_ptr<GuessSource> source_;
  SlotRecords records_;
  SlotSealer sealer_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t changes_ = 0;  // workers that are done
  Speculator speculator_;
  std::shared_ptr<const SplitGcm> schedule_;  // of the key seen last,
  uint64_t schedule_key_ = 0;                 // which has this number
  bool closed_ = false;
  std::string_view told_leader_;  // what those who watch know
  uint64_t told_slot_bytes_ = 0;
};

}  // namespace sealane::serve
