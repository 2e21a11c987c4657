// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The copies under way, by their ids, and what has been decided about each; the rules of
// core/rules.h that say when one may go (`order`, `hazard`, `gate-order`) are read off here.
//
// Allocates in add() alone. Part of Copies; pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
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
};

struct CopiesOptions {
  SafetyRules rules{};
  CopyThreadLimits threads{};
  bool async = true;
  uint64_t bulk_bytes_min = 128_KiB;     // with threads for bulk: what travels on them
  std::optional<CrossingCosts> costs{};  // nothing: every copy travels alone
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
  // What those of a queue wait for in their streams, in its order.
  void find_awaited(std::span<const CopyId> queue, std::vector<EventKey>& out) const {
    out.clear();
    for (const CopyId id : queue) {
      const Carried& copy = (*this)[id];
      if (!copy.put || streams_.reached(copy.after)) continue;
      if (std::find(out.begin(), out.end(), copy.after) != out.end()) continue;
      out.push_back(copy.after);
      if (out.size() == kCopiesToldMax) return;
    }
  }
  bool touches(const Range& host_or_device) const {
    return any([&](const Carried& copy) {
      const bool reaches_host = copy.side != HostSide::snapshot;
      return host_or_device.overlaps(copy.call.device_range()) ||
             (reaches_host && host_or_device.overlaps(copy.call.host));
    });
  }
  bool any_of(ContextKey context) const {
    return any([&](const Carried& copy) { return copy.call.context == context; });
  }

 private:
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
