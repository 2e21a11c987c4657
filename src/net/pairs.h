// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The secrets this process shares with others: one per session, from which the keys of every later
// connection between the two come without another session. Knows itself as a peer from the start,
// so that a process with several GPUs can connect to itself.
//
// Concurrency: any thread; every call takes the lock.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "net/wire.h"
#include "seal/key.h"

namespace sealane::net {

class Pairs {
 public:
  // The random id and secret of this process.
  Pairs();

  const ProcessId& self() const { return self_; }

  // Of a process that has proved to be of that rank, if there are ranks.
  PairId add(const ProcessId& peer, const std::optional<JobRank>& job, Key secret);
  // The newest secret shared with that process, by name.
  std::optional<PairId> with(const ProcessId& peer) const;
  // The secret of that name, if it is shared with that process, and as that rank.
  std::optional<Key> find(const PairId& pair, const ProcessId& peer,
                          const std::optional<JobRank>& job) const;

  void forget_all();  // wipes

 private:
  struct Entry {
    ProcessId peer;
    std::optional<JobRank> job;
    Key secret;
  };
  static constexpr size_t kEntriesMax = 4096;  // the oldest goes: the peer makes a new session

  void forget_oldest();

  ProcessId self_{};
  mutable std::mutex mutex_;
  std::map<PairId, Entry> entries_;
  std::deque<PairId> order_;  // as they came; without this process's own
  std::map<ProcessId, PairId> newest_;
};

}  // namespace sealane::net
