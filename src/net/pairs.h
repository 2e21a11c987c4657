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

  PairId add(const ProcessId& peer, Key secret);
  // The newest secret shared with that process, by name.
  std::optional<PairId> with(const ProcessId& peer) const;
  // The secret of that name, if it is shared with that process.
  std::optional<Key> find(const PairId& pair, const ProcessId& peer) const;

  void forget_all();  // wipes

 private:
  struct Entry {
    ProcessId peer;
    Key secret;
  };
  static constexpr size_t kEntriesMax = 4096;  // older ones go: the peer makes a new session

  ProcessId self_{};
  mutable std::mutex mutex_;
  std::map<PairId, Entry> entries_;
  std::map<ProcessId, PairId> newest_;
};

}  // namespace sealane::net
