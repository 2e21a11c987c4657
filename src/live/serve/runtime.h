// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The one entry of the transparent runtime. The preload says what the program asks for; the runtime
// says whether it took it over. Whatever it does not take over goes to the driver unchanged:
// passing is always right, only slower.
//
// Failure: if something of ours fails (no context, no memory, no thread), copies under way are
// finished, one line says why, and from then on everything passes. If a copy that was carried fails
// in the driver, that is the program's error: its context gets it, for every later call, as it
// would have without us.
//
// Threads: everything from any thread. Lock order: a stream's mutex, then a lane's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/copy.h"
#include "live/serve/crew.h"
#include "live/serve/deferred_reads.h"
#include "live/serve/events.h"
#include "live/serve/gpu_driver.h"
#include "live/serve/lane.h"
#include "live/serve/memory.h"
#include "live/serve/options.h"
#include "live/serve/speculation.h"
#include "live/serve/unsettled.h"

namespace sealane::serve {

struct CopyAsked {
  Direction direction = Direction::to_device;
  uint64_t device_address = 0;
  void* host = nullptr;
  uint64_t bytes = 0;
  StreamHandle stream = nullptr;  // default streams by their names
  uint64_t id = 0;                // next_copy(), if somebody watches
  bool read_now = false;          // nobody may look at the source after the call
};

class Runtime final : private LaneOwner, private ReadOwner {
 public:
  // Called once, when the driver is up and CC mode is on.
  static void start(GpuDriver& driver);
  // nullptr: not started, or stepped aside. One load.
  static Runtime* get() { return current_.load(std::memory_order_acquire); }
  // After fork, in the child: nothing of ours lives there.
  static void abandon() {
    Runtime* const runtime = current_.exchange(nullptr);
    if (runtime != nullptr && runtime->budget_) runtime->budget_->forget();
    DeferredReads::abandon();
  }
  // Around a fork, in the parent: memory whose bytes are to come would be zeros in the child.
  static void before_fork();
  static void after_fork();

  // An asynchronous copy. carried: it is ours and the call has succeeded; else pass it on.
  Route copy(const CopyAsked& asked);
  // Copies of one stream among which there is no order: all are carried, or all are to be passed.
  Route copy_together(std::span<const CopyAsked> batch);
  uint64_t next_copy() { return copies_.fetch_add(1) + 1; }
  // Something else goes into this stream.
  void touch(StreamHandle stream);
  // What went into it may write host memory, or let the host do so (unsettled.h).
  void unsettle(StreamHandle stream);
  void forget_stream(StreamHandle stream);            // the program destroyed it
  void forget_context(ContextHandle context);         // and all that was in it
  void set_capturing(StreamHandle stream, bool now);  // nothing is carried while any is
  bool any_capturing() const { return captures_.load(std::memory_order_relaxed) != 0; }

  // The code every later call on a context must return: success, or the error of a carried copy.
  bool any_failed() const { return any_failed_.load(std::memory_order_relaxed); }
  Code failure_of(ContextHandle context);

  // Wait until nothing of ours is under way: at all, or on this memory.
  void drain();
  void drain(Range host_or_device);

  // Gives our contexts' places back: the program wants one. True if there was something to give.
  // They may be had again when the program has given one back.
  bool give_up_contexts();

  // What the program has.
  RangeMap<DeviceBlock>& device_memory() { return device_memory_; }
  RangeMap<HostBlock>& host_memory() { return host_memory_; }
  void add_host_memory(const Range& range, const HostBlock& block);
  Crew& crew() { return crew_; }
  // Is pinned memory to be ours? The driver's cannot be guarded.
  bool owns_pinned() const { return options().pinned || seals_ahead() || reads_ != nullptr; }
  bool seals_ahead() const { return speculation_.policy != nullptr; }
  const SpeculationChoice& speculation() const { return speculation_; }

  void step_aside(const char* why);

 private:
  static constexpr size_t kLanesPerDirection = 2;  // their tolls overlap
  // Bulk copies to the device travel apart where they are sealed ahead, so that nothing else uses
  // the positions planned for them.
  static constexpr size_t kBulkLane = 2 * kLanesPerDirection;
  static constexpr size_t kBulkLanes = 2;  // the same reason; each has its part of the memory
  static constexpr size_t kLanesPerDevice = kBulkLane + kBulkLanes;
  static constexpr uint64_t kTogetherMax = Crossing::kBytesMax;

  struct Copied {
    Range device;
    Range host;
    Direction direction;
    const GateWord* word;  // its lane's
    std::shared_ptr<Ticket> ticket;
  };
  struct Lease;
  struct Stream {
    std::mutex mutex;
    ContextHandle context = nullptr;
    int device = 0;
    bool legacy = false;
    GateWord words[kLanesPerDevice];  // each set by one lane only
    // Copies with nothing between them: what was before, and which of them may not have landed.
    std::shared_ptr<const EventLease> before;
    std::vector<Copied> run;
    std::atomic<bool> touched{true};  // something else went into the stream since
    uint64_t legacy_epoch = 0;        // of the legacy stream, at the last carried copy
  };
  using StreamPointer = std::shared_ptr<Stream>;
  // A copy that may be carried, and by which lane, before anything is in its stream.
  struct Carriage {
    StreamPointer stream;
    Lane* lane = nullptr;
    size_t place = 0;
    LaneRequest request;
  };
  using Load = std::array<size_t, kLanesPerDevice>;
  static constexpr size_t kNowhere = kLanesPerDevice;
  struct Choice {
    Load load{};                  // copies the lanes are about to get
    size_t neighbour = kNowhere;  // the lane of a copy that this one could travel with
  };

  explicit Runtime(GpuDriver& driver);
  Route offer(const CopyAsked& asked);
  Route offer_together(std::span<const CopyAsked> batch);
  bool departs(const LaneRequest& request) override;
  void landed(const LaneRequest& request) override;
  void failed(const LaneRequest& request, Direction direction, Code code) override;
  void carried(const LaneRequest& request, Code code) override;
  void refused(const ReadOwnerData& whose, const Range& destination, const char* why) override;
  void delivered(const ReadOwnerData& whose, bool verified) override;

  uint64_t key_of(StreamHandle stream, ContextHandle context) const;
  StreamPointer stream(StreamHandle handle);        // nullptr: the driver does not know it
  StreamPointer known_stream(StreamHandle handle);  // only if it has had a carried copy
  Route prepare(const CopyAsked& asked, Choice choice, Carriage& out);
  static size_t neighbour_of(const CopyAsked& asked, Stream& stream);
  Route prepare_all(std::span<const CopyAsked> batch, std::span<Carriage> all);
  void give_back(const Carriage& carriage);
  // The lane with the least to do, and its place among the device's; nullptr: there is none.
  Lane* lane(int device, Direction direction, uint64_t reachable, const Choice& choice,
             size_t& place);
  void no_room(bool at_all);
  Lane* bulk_lane(int device, const Range& host, uint64_t reachable, size_t& place);
  size_t bulk_place(const Range& host) const;
  std::unique_ptr<Lane>& lane_at(int device, size_t place);
  Lane* open_lane(const Carrier& carrier, uint64_t reachable, Ahead* ahead = nullptr);
  DeferredReads* start_reads();
  bool sealed_ahead(const CopyAsked& asked, int device);
  bool settled(const CopyAsked& asked, int device);
  Ahead* make_ahead(int device, int lane);
  int next_lane(int device);
  void plan(const CopyAsked& asked, int device, const Lane& lane, LaneRequest& request);
  void fail(ContextHandle context, Code code);
  Route take_host_side(const CopyAsked& asked, LaneRequest& request);
  void* snapshot(const void* from, uint64_t bytes);
  // Copies on all workers, with calls that cannot fault.
  bool move(bool (*how)(const void*, void*, uint64_t), const void* from, void* to, uint64_t bytes);
  Code put_into_stream(const CopyAsked& asked, Carriage& carriage);
  Code put_gates(std::span<const CopyAsked> batch, std::span<Carriage> all, Load& gated);
  Code put_gate(StreamHandle stream, Carriage& carriage);
  Code follow(StreamHandle handle, Stream& stream);
  Code begin_run(StreamHandle handle, Stream& stream);
  static void order(const CopyAsked& asked, std::span<const Copied> run, Carriage& carriage);
  static Copied trace_of(const CopyAsked& asked, const Carriage& carriage);
  std::shared_ptr<Lease> take_event(ContextHandle context);
  void give_event(ContextHandle context, EventHandle event);

  static std::atomic<Runtime*> current_;

  GpuDriver& driver_;
  Crew crew_;
  Staging staging_;
  const SpeculationChoice speculation_;
  DeferredReads* const reads_;  // nullptr: copies to the host are opened in the call
  RangeMap<DeviceBlock> device_memory_;
  RangeMap<HostBlock> host_memory_;
  Unsettled unsettled_;

  std::shared_mutex streams_mutex_;
  std::unordered_map<uint64_t, StreamPointer> streams_;
  std::atomic<uint64_t> legacy_epoch_{0};
  std::mutex captures_mutex_;
  std::set<uint64_t> capturing_;
  std::atomic<size_t> captures_{0};
  std::atomic<bool> memory_operations_{true};
  std::atomic<uint64_t> copies_{0};

  std::shared_mutex carrying_;  // shared: somebody is about to ask a lane
  std::mutex lanes_mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_;    // kLanesPerDevice each
  std::vector<int> lanes_opened_;               // of each device: their numbers
  std::unique_ptr<SlotBudget> budget_;          // of their slots
  std::vector<Ahead*> aheads_;                  // never deleted: a message may still look at one
  std::vector<std::unique_ptr<Lane>> retired_;  // closed; their threads may still be leaving
  enum class Room : uint8_t { open, full, never };
  std::atomic<Room> room_{Room::open};     // for contexts of ours
  std::atomic<bool> room_for_more_{true};  // for second lanes

  std::mutex events_mutex_;
  std::unordered_map<ContextHandle, std::vector<EventHandle>> events_;

  std::atomic<bool> any_failed_{false};
  std::mutex failed_mutex_;
  std::unordered_map<ContextHandle, Code> failed_;
};

}  // namespace sealane::serve
