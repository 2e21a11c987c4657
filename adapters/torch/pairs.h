// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages between two ranks, apart from the collectives. Every peer and direction is a group of
// two with keys, order and a thread of its own: a receive that nobody answers yet holds up neither
// a send to the same peer nor a collective. The lanes open with the first message and are joined by
// both sides, who prove who they are by what the two share since they joined the group: no third
// rank can pose as one of them. Messages of one lane arrive in the order they were sent.
//
// Failure:     the callback gets the reason. A lane's first error is final for that lane. A lane
//              that waits for a peer ends with the group, on whichever rank that ends, and when the
//              peer has left it.
// Concurrency: any thread; callbacks come on threads of the lane's, and may wait for other
//              messages. finish() may be called beside abort(), and by one thread.
//              A child made by fork() has none of the lanes' threads: there every message is an
//              error, and the lanes are left as they are.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sealane/comm.h"

namespace sealane::adapter {

class Pairs {
 public:
  // `group` outlives this object; `options` are those it was joined with, and `world_ranks` the
  // names for errors.
  Pairs(const Comm& group, CommOptions options, std::vector<int> world_ranks);
  ~Pairs();  // finishes
  Pairs(const Pairs&) = delete;
  Pairs& operator=(const Pairs&) = delete;

  // The memory belongs to the lane until the callback. A tag, a type, a label or a count that
  // differs is an error.
  void send(int peer, int tag, const void* data, size_t count, DataType type,
            const CallLabel& label, WorkCallback done);
  void receive(int peer, int tag, void* data, size_t count, DataType type, const CallLabel& label,
               WorkCallback done);

  // Ends what has not met its peer yet and waits for the rest. Later messages are errors.
  void finish();

  // Ends everything with an error, on both sides of every lane, and waits for nothing.
  void abort();

  CommTraffic traffic() const;

 private:
  class Lane;
  struct Message {
    int64_t tag;
    void* data;  // only read on the sender's side
    size_t count;
    DataType type;
    CallLabel label;
    WorkCallback done;
  };

  bool forked() const;
  std::string why_not(int peer) const;  // that rank will not come to its lane; empty if it may
  void add(int from, int to, Message message);
  Lane* lane(int from, int to);
  std::vector<Lane*> lanes() const;

  const pid_t process_;  // that the lanes' threads are of
  const Comm& group_;
  CommOptions options_;
  std::vector<int> world_ranks_;
  std::atomic<bool> ending_ = false;
  mutable std::mutex mutex_;
  std::map<std::pair<int, int>, std::unique_ptr<Lane>> lanes_;  // by sender and receiver
};

// Comm speaks of the ranks of its own group; users know those of the world. Replaces the numbers
// after "rank" and "ranks".
std::string in_world_ranks(const std::string& text, const std::vector<int>& world_ranks);

}  // namespace sealane::adapter
