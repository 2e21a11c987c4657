// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The copy threads of each device, and which of them gets a copy. Two in each direction, so that
// their tolls overlap: the second is opened when the first has something to do. Bulk copies that
// may be sealed ahead have threads of their own, so that nothing else uses the positions planned
// for them; those of one context always travel on the same one, or nobody could foresee what it is
// asked for next. (The driver carries a context's copies one after the other, too, and those of
// several at a time.)
//
// Contexts are scarce: a thread that cannot be had is not asked for again. Without a first one of a
// direction nothing is carried that way; without the others copies go with the rest.
//
// Part of Copies; pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/copy/copy_call.h"
#include "core/copy/copy_list.h"
#include "core/copy/gathering.h"
#include "core/copy/speculation.h"

namespace sealane {

// What a thread hands to the driver: several small copies, one, a part of one, or pads.
struct Crossing {
  CopyList copies{};
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t pads = 0;
  bool last = true;                     // its copies are over with it
  bool dropped = false;                 // their context has failed: there is nothing to hand over
  bool early = false;                   // into memory of ours: others have to land before it
  bool between = false;                 // early: that memory is the copy thread's, not the copy's
  bool delivered = false;               // from memory of ours to where it belongs, or on its way
  bool fails_context = false;           // among its endings
  std::optional<Gathering> together{};  // several
};

using CopyThreadId = uint32_t;  // device * kThreadsPerDevice + place

struct CopyThreadLimits {
  uint32_t per_direction = 2;
  uint32_t bulk = 0;  // at most 2
};

constexpr uint32_t kThreadsPerDirection = 2;
constexpr uint32_t kBulkThreads = 2;
constexpr uint32_t kFirstBulkThread = 2 * kThreadsPerDirection;
constexpr uint32_t kThreadsPerDevice = kFirstBulkThread + kBulkThreads;

struct CopyThread {
  enum class State : uint8_t { absent, open, refused, broken };  // there, without a good context
  State state = State::absent;
  std::deque<CopyId> queue;                       // not over, in the order they were asked for
  std::unordered_map<StreamKey, size_t> streams;  // how many of them each has
  size_t told_to = 0;                             // so far in the queue it was told what to look at
  Crossing crossing;                              // what the driver has of them now
  bool crosses_early = true;                      // until there is no memory for it
  bool leaving = false;                           // with its context, which the program may need
  Speculation* ahead = nullptr;                   // bulk: what seals ahead for it

  bool open() const { return state == State::open; }
  // It is one of the first, nearly always.
  void drop(CopyId copy, StreamKey stream) {
    const auto counted = streams.find(stream);
    if (counted != streams.end() && --counted->second == 0) streams.erase(counted);
    const auto found = std::find(queue.begin(), queue.end(), copy);
    if (found != queue.end()) queue.erase(found);
  }
};

class CopyThreads {
 public:
  using Load = std::array<size_t, kThreadsPerDevice>;  // what a call is about to add

  explicit CopyThreads(const CopyThreadLimits& limits) : limits_(limits) {}

  static uint32_t place_of(CopyThreadId id) { return id % kThreadsPerDevice; }
  static uint32_t device_of(CopyThreadId id) { return id / kThreadsPerDevice; }
  static Direction direction_of(CopyThreadId id) {
    const uint32_t place = place_of(id);
    const bool out = place >= kThreadsPerDirection && place < kFirstBulkThread;
    return out ? Direction::to_host : Direction::to_device;
  }
  static bool is_bulk(CopyThreadId id) { return place_of(id) >= kFirstBulkThread; }

  CopyThread& operator[](CopyThreadId id) {
    if (id >= threads_.size()) grow(id);
    return threads_[id];
  }
  size_t pending(CopyThreadId id) const {
    return id < threads_.size() ? threads_[id].queue.size() : 0;
  }
  const std::deque<CopyId>* queue_of(CopyThreadId id) const {
    return id < threads_.size() ? &threads_[id].queue : nullptr;
  }
  const Crossing& crossing_of(CopyThreadId id) const { return threads_[id].crossing; }
  // Of what may be sealed ahead.
  size_t bulk_pending(uint32_t device) const {
    size_t all = 0;
    for (uint32_t i = 0; i < limits_.bulk; ++i) {
      all += pending(device * kThreadsPerDevice + kFirstBulkThread + i);
    }
    return all;
  }
  bool is_open(CopyThreadId id) const { return id < threads_.size() && threads_[id].open(); }
  // What would seal ahead from this memory, if it is there already.
  Speculation* ahead_of(const CopyCall& call) const {
    if (limits_.bulk == 0 || !is_open(bulk_thread(call))) return nullptr;
    return threads_[bulk_thread(call)].ahead;
  }
  template <typename Visit>
  void each_ahead(Visit&& visit) const {
    for (const CopyThread& thread : threads_) {
      if (thread.ahead != nullptr) visit(*thread.ahead);
    }
  }

  // How often there was room for another context again. Whoever looks for one asks this before:
  // what came meanwhile he has not tried.
  uint64_t rooms() const { return rooms_; }
  void handle_opened(CopyThreadId id, bool opened, Speculation* ahead, uint64_t rooms) {
    CopyThread& thread = (*this)[id];
    thread.ahead = ahead;
    thread.crosses_early = true;
    if (!opened && rooms == rooms_) handle_no_room();
    const auto without = room_ ? CopyThread::State::absent : CopyThread::State::refused;
    thread.state = opened ? CopyThread::State::open : without;
  }
  void handle_broken(CopyThreadId id, uint64_t rooms) {
    threads_[id].state = CopyThread::State::broken;
    if (rooms == rooms_) handle_no_room();
  }
  void handle_mended(CopyThreadId id) {
    const bool leaving = threads_[id].leaving;
    threads_[id].state = leaving ? CopyThread::State::refused : CopyThread::State::open;
    threads_[id].crosses_early = true;
  }
  void handle_room() {
    room_ = true;
    ++rooms_;
    for (CopyThread& thread : threads_) {
      const bool refused = thread.state == CopyThread::State::refused && !thread.leaving;
      if (refused) thread.state = CopyThread::State::absent;
    }
  }
  // All that are there are to go, and get nothing more. Each has gone then, or stays after all.
  void handle_leaving() {
    handle_no_room();
    for (CopyThread& thread : threads_) {
      const bool there = thread.open() || thread.state == CopyThread::State::broken;
      thread.leaving = thread.leaving || there;  // somebody else may have asked for it, too
      if (thread.open()) thread.state = CopyThread::State::refused;
    }
  }
  bool is_leaving(CopyThreadId id) const { return threads_[id].leaving; }
  void handle_left(CopyThreadId id, bool gone) {
    CopyThread& thread = threads_[id];
    thread.leaving = false;
    if (gone) {
      thread.ahead = nullptr;
      thread.state = room_ ? CopyThread::State::absent : CopyThread::State::refused;
    } else if (thread.state == CopyThread::State::refused) {
      thread.state = CopyThread::State::open;
    }
  }

  // Nothing seals ahead for its device yet, and something could.
  bool lacks_bulk(const CopyCall& call) const {
    const CopyThreadId first = call.device * kThreadsPerDevice + kFirstBulkThread;
    for (uint32_t i = 0; i < limits_.bulk; ++i) {
      if (is_open(first + i)) return false;
    }
    return absent(bulk_thread(call));
  }
  // Contexts are known by numbers of any kind.
  CopyThreadId bulk_thread(const CopyCall& call) const {
    const uint64_t mixed = call.context * 0x9e3779b97f4a7c15;
    const auto turn = static_cast<uint32_t>((mixed >> 32) % limits_.bulk);
    return call.device * kThreadsPerDevice + kFirstBulkThread + turn;
  }
  // May it cross early and wait to land? Another thread of its direction has to be left, or to be
  // had, for the copies of other streams. `waits`: of one with an early crossing, does it still?
  template <typename Waits>
  bool may_wait(CopyThreadId id, const Waits& waits) const {
    if (!threads_[id].crosses_early) return false;
    const CopyThreadId first = id - place_of(id) % kThreadsPerDirection;
    bool left = false;
    for (CopyThreadId other = first; other < first + limits_.per_direction; ++other) {
      if (other == id) continue;
      if (threads_[other].crossing.early && waits(other)) return false;
      left = left || threads_[other].open() || absent(other);
    }
    return left;
  }

  // The thread that would be best for a copy and has to be opened first.
  std::optional<CopyThreadId> missing(const CopyCall& call, bool bulk) const {
    if (bulk && absent(bulk_thread(call))) return bulk_thread(call);
    if (bulk && is_open(bulk_thread(call))) return std::nullopt;
    const CopyThreadId first = first_of(call);
    if (absent(first)) return first;
    for (uint32_t i = 1; i < limits_.per_direction && is_open(first + i - 1); ++i) {
      if (pending(first + i - 1) == 0) break;
      if (absent(first + i)) return first + i;
    }
    return std::nullopt;
  }

  // The one with the least to do. `wish`: the thread of a copy that this one follows, or could
  // travel with: nobody waits for company, but who has to wait does so where it may find some.
  std::optional<CopyThreadId> choose(const CopyCall& call, bool bulk, const Load& load,
                                     std::optional<CopyThreadId> wish) const {
    if (bulk && is_open(bulk_thread(call))) return bulk_thread(call);
    const CopyThreadId first = first_of(call);
    if (!is_open(first)) return std::nullopt;
    const auto work = [&](CopyThreadId id) { return pending(id) + load[place_of(id)]; };
    CopyThreadId best = first;
    for (uint32_t i = 1; i < limits_.per_direction; ++i) {
      if (is_open(first + i) && work(first + i) < work(best)) best = first + i;
    }
    const bool usual = wish && *wish >= first && *wish < first + kThreadsPerDirection;
    return usual && is_open(*wish) && work(best) > 0 ? *wish : best;
  }

 private:
  void grow(CopyThreadId id) {
    CopyThread fresh;
    if (!room_) fresh.state = CopyThread::State::refused;
    threads_.resize(size_t{id / kThreadsPerDevice + 1} * kThreadsPerDevice, fresh);
  }
  // One that is broken is there, and may find room now, unless it is to go.
  bool absent(CopyThreadId id) const {
    if (id >= threads_.size()) return room_;
    const CopyThread& thread = threads_[id];
    const bool broken = thread.state == CopyThread::State::broken && !thread.leaving;
    return thread.state == CopyThread::State::absent || (broken && room_);
  }
  // For one is no room for any, until the program has given a context back.
  void handle_no_room() {
    room_ = false;
    for (CopyThread& thread : threads_) {
      if (thread.state == CopyThread::State::absent) thread.state = CopyThread::State::refused;
    }
  }
  CopyThreadId first_of(const CopyCall& call) const {
    const uint32_t side = call.direction == Direction::to_device ? 0 : kThreadsPerDirection;
    return call.device * kThreadsPerDevice + side;
  }

  CopyThreadLimits limits_;
  std::vector<CopyThread> threads_;
  bool room_ = true;
  uint64_t rooms_ = 0;
};

}  // namespace sealane
