// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: a group whose ranks are processes, so that they can die and be measured one by one.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "comm/group_fixture.h"

namespace sealane {

// What a rank answered before it ended; `killed` if a signal ended it.
struct RankEnd {
  bool killed = false;
  std::string answer;
};

class ProcessGroup {
 public:
  explicit ProcessGroup(const GroupSetup& setup) : group_(setup), size_(setup.size) {}
  ~ProcessGroup() {
    for (const Rank& rank : ranks_) {
      if (rank.process <= 0) continue;
      kill(rank.process, SIGKILL);
      waitpid(rank.process, nullptr, 0);
      close(rank.pipe);
    }
  }
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  const ThreadGroup& options() const { return group_; }
  pid_t process(uint32_t rank) const { return ranks_[rank].process; }

  // Every rank joins and runs the body; what it returns, or why it could not join, is its answer.
  using Body = std::function<std::string(Communicator&)>;
  void start(const Body& body, const ThreadGroup::Adjust& adjust = {}) {
    for (uint32_t rank = 0; rank < size_; ++rank) {
      int ends[2];
      if (pipe(ends) != 0) return;
      const pid_t child = fork();
      if (child == 0) {
        close(ends[0]);
        const std::string answer = run_rank(rank, body, adjust);
        static_cast<void>(!write(ends[1], answer.data(), answer.size()));
        _exit(0);
      }
      close(ends[1]);
      ranks_.push_back({child, ends[0]});
    }
  }

  // Waits for the rank to end.
  RankEnd end_of(uint32_t rank) {
    RankEnd end;
    char piece[4096];
    for (ssize_t n; (n = read(ranks_[rank].pipe, piece, sizeof piece)) > 0;) {
      end.answer.append(piece, static_cast<size_t>(n));
    }
    close(ranks_[rank].pipe);
    int status = 0;
    waitpid(ranks_[rank].process, &status, 0);
    end.killed = WIFSIGNALED(status);
    ranks_[rank].process = -1;
    return end;
  }

 private:
  struct Rank {
    pid_t process;
    int pipe;
  };

  std::string run_rank(uint32_t rank, const Body& body, const ThreadGroup::Adjust& adjust) const {
    JoinOptions options = group_.options(rank);
    if (adjust) adjust(options);
    auto communicator = Communicator::create(std::move(options));
    return communicator ? body(**communicator) : "join: " + communicator.error().message;
  }

  ThreadGroup group_;
  uint32_t size_;
  std::vector<Rank> ranks_;
};

}  // namespace sealane
