// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The program's streams as far as copies matter: where a run of copies begins (an event marks what
// was in the stream before), which copies it has, and the value of each thread's gate word.
//
// Allocates in operator[] and begin() alone. Part of Copies, which says what the rules are; pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/copy/copy_call.h"
#include "core/copy/copy_threads.h"
#include "core/rules.h"

namespace sealane {

struct RunMember {
  CopyId copy = kNoCopy;
  CopyCall call;
  CopyThreadId thread = 0;
};

struct StreamRun {
  ContextKey context = 0;
  EventKey before = 0;  // 0: there was no run yet
  std::vector<RunMember> members;
  bool touched = true;                              // something else went into the stream since
  uint64_t legacy_epoch = 0;                        // of the legacy stream, when the run began
  std::array<uint32_t, kThreadsPerDevice> words{};  // the last value a gate waits for
};

class StreamRuns {
 public:
  static constexpr size_t kMembersMax = 64;

  explicit StreamRuns(const SafetyRules& rules) : rules_(rules) {}

  StreamRun& operator[](const CopyCall& call) {
    StreamRun& run = streams_[call.stream];
    run.context = call.context;
    return run;
  }

  const StreamRun& of(const CopyCall& call) const { return streams_.at(call.stream); }

  // Does a copy of this call go on with the stream's run? Else begin().
  bool continues(const StreamRun& run, const CopyCall& call) const {
    if (run.before == 0 || run.members.size() >= kMembersMax) return false;
    if (rules_.legacy && (call.legacy || run.legacy_epoch != legacy_epoch_)) return false;
    return !run.touched || !rules_.run;
  }

  // What a copy for this thread must not overtake: the last that each thread has of the run.
  // `last`: of those of its own call that the thread has, which are in no run yet.
  std::vector<CopyId> find_behind(const CopyCall& call, CopyThreadId thread, CopyId last) const {
    std::array<CopyId, kThreadsPerDevice> lasts{};
    for (const RunMember& member : of(call).members) {
      const bool same = member.thread == thread;
      if (same ? rules_.gate_order : rules_.landing) {
        lasts[CopyThreads::place_of(member.thread)] = member.copy;
      }
    }
    if (last != kNoCopy && rules_.gate_order) lasts[CopyThreads::place_of(thread)] = last;
    std::vector<CopyId> behind;
    std::copy_if(lasts.begin(), lasts.end(), std::back_inserter(behind),
                 [](CopyId copy) { return copy != kNoCopy; });
    return behind;
  }

  // What is in the stream now has to be done before the copies that follow.
  EventKey begin(StreamRun& run, bool legacy) {
    const size_t gone = gone_.size() + events_.size() + 1;
    if (gone_.capacity() < gone) gone_.reserve(2 * gone);
    events_.insert({last_event_ + 1, {.context = run.context}});
    if (legacy) ++legacy_epoch_;
    run.legacy_epoch = legacy_epoch_;
    run.members.clear();
    drop_unused(run.before);
    return run.before = ++last_event_;
  }

  // The next value of a gate word. None is 0, however long the program runs: that is no gate.
  static uint32_t next_value(uint32_t& word) {
    if (++word == 0) ++word;
    return word;
  }

  void handle_work(StreamKey stream, bool legacy) {
    if (legacy) ++legacy_epoch_;
    const auto found = streams_.find(stream);
    if (found != streams_.end()) found->second.touched = true;
  }

  // The context of its stream, if it is still of interest.
  std::optional<ContextKey> handle_reached(EventKey event) {
    const auto found = events_.find(event);
    if (found == events_.end()) return std::nullopt;
    found->second.reached = true;
    return found->second.context;
  }
  bool reached(EventKey event) const {
    const auto found = events_.find(event);
    return found == events_.end() || found->second.reached;
  }
  // One more copy waits for it, or one less. What is reached and has nobody is forgotten.
  void hold(EventKey event) {
    const auto found = events_.find(event);
    if (found != events_.end()) ++found->second.users;
  }
  void release(EventKey event) {
    const auto found = events_.find(event);
    if (found == events_.end()) return;
    if (found->second.users > 0) --found->second.users;
    if (found->second.reached || found->second.orphan) drop_unused(event);
  }
  std::optional<EventKey> take_gone() {
    if (gone_.empty()) return std::nullopt;
    const EventKey event = gone_.back();
    gone_.pop_back();
    return event;
  }

  void forget(StreamKey stream) {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    leave(found->second);
    streams_.erase(found);
  }

 private:
  struct Event {
    ContextKey context = 0;
    bool reached = false;
    bool orphan = false;  // its stream is gone
    uint32_t users = 0;
  };

  void leave(const StreamRun& run) {
    const auto event = events_.find(run.before);
    if (event != events_.end()) event->second.orphan = true;
    drop_unused(run.before);
  }
  void drop_unused(EventKey event) {
    const auto found = events_.find(event);
    if (found == events_.end() || found->second.users > 0) return;
    events_.erase(found);
    gone_.push_back(event);
  }

  const SafetyRules rules_;
  std::unordered_map<StreamKey, StreamRun> streams_;
  std::unordered_map<EventKey, Event> events_;
  std::vector<EventKey> gone_;  // has room for all there are
  EventKey last_event_ = 0;
  uint64_t legacy_epoch_ = 0;
};

}  // namespace sealane
