// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The copies under way, by their ids, and what has been decided about each; the rules of
// core/rules.h that say when one may go (`order`, `landing`, `early-read`, `gate-order`) are read
// off here.
//
// Allocates in add() alone. Part of Copies; pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/copy/copy_call.h"
#include "core/copy/copy_threads.h"
#include "core/copy/gathering.h"
#include "core/copy/stream_runs.h"
#include "core/rules.h"

namespace sealane {

constexpr size_t kCopiesToldMax = 64;  // at once, of events and of copies whose turn has come

struct Carried {
  CopyCall call;
  HostSide side = HostSide::in_place;
  CopyThreadId thread = 0;
  EventKey after = 0;
  std::vector<CopyId> behind;
  uint32_t gate = 0;             // 0: another copy of the call has it
  bool put = false;              // all that its call puts into the stream is there
  bool looked = false;           // its guards were looked at, when its turn had come
  bool told = false;             // bulk: its turn is known behind the door
  uint64_t crossed = 0;          // bytes handed over, by turns
  Speculation* ahead = nullptr;  // knows of it

  // To the host, through memory of ours: delivered from there.
  bool arrives_in_ours() const {
    return side == HostSide::at_turn && call.direction == Direction::to_host;
  }
};

constexpr uint64_t kEarlyBytesMax = 16_MiB;  // what a copy thread has memory for

struct CopiesOptions {
  SafetyRules rules{};
  CopyThreadLimits threads{};
  bool async = true;
  uint64_t bulk_bytes_min = 128_KiB;     // with threads for bulk: what travels on them
  std::optional<CrossingCosts> costs{};  // nothing: every copy travels alone
  uint64_t early_bytes_max = 0;          // of a copy that may cross early,
  bool early_in_place = true;            // also if its source is read then, and not already
};

class CopyTable {
 public:
  CopyTable(const CopiesOptions& options, const StreamRuns& streams)
      : rules_(options.rules), streams_(streams) {}

  void add(CopyId id, Carried copy) { copies_.emplace(id, std::move(copy)); }
  void erase(CopyId id) { copies_.erase(id); }
  Carried& operator[](CopyId id) { return copies_.at(id); }
  const Carried& operator[](CopyId id) const { return copies_.at(id); }
  bool contains(CopyId id) const { return copies_.contains(id); }
  bool empty() const { return copies_.empty(); }

  // All that was in its stream before is done, and all it must not overtake, or (`with`) travels
  // with it.
  bool may_go(const Carried& copy, const CopyList& with = {}) const {
    if (!copy.put || (rules_.order && !streams_.reached(copy.after))) return false;
    return std::all_of(copy.behind.begin(), copy.behind.end(), [&](CopyId other) {
      return !contains(other) || std::find(with.begin(), with.end(), other) != with.end();
    });
  }
  // The same, but for copies that have not landed yet: all of them are in crossings that one may
  // wait for, and none in there writes what this one reads. (Of each thread's `behind` names the
  // last copy alone: it crosses only if those before it have ended, or cross with it.)
  // `crossing_of`: nothing for a copy whose crossing is not to be waited for.
  template <typename CrossingOf>
  bool may_cross_early(const Carried& copy, const CrossingOf& crossing_of) const {
    if (!copy.put || (rules_.order && !streams_.reached(copy.after))) return false;
    return std::all_of(copy.behind.begin(), copy.behind.end(), [&](CopyId other) {
      if (!contains(other)) return true;
      const Crossing* const before = crossing_of((*this)[other].thread, other);
      return before != nullptr && !(rules_.early_read && reads_from(copy, *before));
    });
  }
  // What those of a thread's queue wait for in their streams: of each stream the first, which is
  // reached before the others. Who has more streams than can be told at once is told the next ones
  // the next time, for none may keep another waiting. What stands behind the first of each is not
  // looked at: it may be very many.
  void find_awaited(CopyThread& thread, std::vector<EventKey>& out) const {
    std::array<StreamKey, kCopiesToldMax> streams{};
    out.clear();
    size_t at = std::min(thread.told_to, thread.queue.size());
    const size_t most = std::min(streams.size(), thread.streams.size());
    for (; at < thread.queue.size() && out.size() < most; ++at) {
      const Carried& copy = (*this)[thread.queue[at]];
      if (!copy.put || streams_.reached(copy.after)) continue;
      const auto told = streams.begin() + static_cast<ptrdiff_t>(out.size());
      if (std::find(streams.begin(), told, copy.call.stream) != told) continue;
      *told = copy.call.stream;
      out.push_back(copy.after);
    }
    thread.told_to = at < thread.queue.size() && most < thread.streams.size() ? at : 0;
  }
  bool touches(const Range& host_or_device) const {
    return any([&](const Carried& copy) { return touches(copy, host_or_device); });
  }
  bool touches(const Range& host_or_device, StreamKey but) const {
    return any([&](const Carried& copy) {
      return copy.call.stream != but && touches(copy, host_or_device);
    });
  }
  bool any_of(ContextKey context) const {
    return any([&](const Carried& copy) { return copy.call.context == context; });
  }

 private:
  bool reads_from(const Carried& copy, const Crossing& before) const {
    return std::any_of(before.copies.begin(), before.copies.end(), [&](CopyId one) {
      return reads_what(copy.call, copy.side, (*this)[one].call);
    });
  }
  static bool touches(const Carried& copy, const Range& host_or_device) {
    const bool reaches_host = copy.side != HostSide::snapshot;
    return host_or_device.overlaps(copy.call.device_range()) ||
           (reaches_host && host_or_device.overlaps(copy.call.host));
  }
  template <typename Predicate>
  bool any(const Predicate& predicate) const {
    return std::any_of(copies_.begin(), copies_.end(),
                       [&](const auto& entry) { return predicate(entry.second); });
  }

  const SafetyRules rules_;
  const StreamRuns& streams_;
  std::unordered_map<CopyId, Carried> copies_;
};

}  // namespace sealane
