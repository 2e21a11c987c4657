// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "nccl/job.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>

#include "base/check.h"
#include "base/text.h"

namespace sealane::nccl {

constexpr int kPoints = 32;
constexpr size_t kNumbersMax = 16;
constexpr size_t kWordsMax = 512;

struct Board {
  struct Post {
    std::atomic<bool> there{false};
    HandleBytes handle{};
  };
  struct Rank {
    std::atomic<pid_t> process{0};
    std::array<std::atomic<bool>, kPoints> points{};
    std::array<double, kNumbersMax> numbers{};
    std::array<char, kWordsMax> words{};
    std::array<char, kWordsMax> line{};
    std::atomic<bool> passed{false};
  };
  Post posts[kRanksMax][kRanksMax][kLinksMax];  // listener, connector, which
  std::array<Rank, kRanksMax> ranks;
};

namespace {

constexpr Duration kNap = std::chrono::microseconds(100);

// How long the others may go on when one rank has failed: they should hear of it by themselves.
constexpr Duration kGrace = std::chrono::seconds(20);

bool (*stop_of_all)() = nullptr;

void put_text(std::array<char, kWordsMax>& to, const std::string& text) {
  const size_t length = std::min(text.size(), kWordsMax - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = '\0';
}

template <typename Condition>
bool wait_until(Condition condition, Duration patience) {
  const Instant end = SteadyClock().now() + patience;
  while (!condition()) {
    if (SteadyClock().now() > end) return false;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

void set_environment(const std::vector<std::string>& environment, int rank, int ranks) {
  setenv("RANK", concat(rank).c_str(), 1);
  setenv("WORLD_SIZE", concat(ranks).c_str(), 1);
  for (std::string_view entry : environment) {
    const size_t colon = entry.find(':');
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    if (colon != std::string_view::npos && colon < equals) {
      if (entry.substr(0, colon) != concat(rank)) continue;
      entry.remove_prefix(colon + 1);
    }
    const size_t at = entry.find('=');
    const std::string value(entry.substr(at + 1));
    const std::string name(entry.substr(0, at));
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
}

[[noreturn]] void be_rank(Board& board, int rank, int ranks,
                          const std::vector<std::string>& environment,
                          const std::function<Status(Seat&)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  set_environment(environment, rank, ranks);
  Board::Rank& own = board.ranks[static_cast<size_t>(rank)];
  own.process = getpid();
  Seat seat(board, rank, ranks);
  const Status status = body(seat);
  if (!status) put_text(own.words, status.error().message);
  own.passed = status.ok();
  _exit(status ? 0 : 1);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGKILL ? "killed" : concat("died of signal ", WTERMSIG(status));
  }
  return concat("ended with code ", WEXITSTATUS(status));
}

}  // namespace

void Seat::leave_handle(int from, int link, const HandleBytes& handle) {
  Board::Post& post = board_.posts[rank_][from][link];
  post.handle = handle;
  post.there.store(true, std::memory_order_release);
}

Result<HandleBytes> Seat::take_handle(int to, int link, Duration patience) {
  Board::Post& post = board_.posts[to][rank_][link];
  if (!wait_until([&] { return post.there.load(std::memory_order_acquire); }, patience)) {
    return peer_error(concat("rank ", to, " left no handle"));
  }
  return post.handle;
}

void Seat::reach(int point) {
  board_.ranks[static_cast<size_t>(rank_)].points[static_cast<size_t>(point)] = true;
}

bool Seat::reached(int rank, int point) const {
  return board_.ranks[static_cast<size_t>(rank)].points[static_cast<size_t>(point)];
}

Status Seat::await(int rank, int point, Duration patience) {
  if (wait_until([&] { return reached(rank, point); }, patience)) return {};
  return peer_error(concat("rank ", rank, " did not come to point ", point));
}

pid_t Seat::process_of(int rank) const { return board_.ranks[static_cast<size_t>(rank)].process; }

void Seat::put_number(int index, double value) {
  board_.ranks[static_cast<size_t>(rank_)].numbers[static_cast<size_t>(index)] = value;
}

double Seat::number_of(int rank, int index) const {
  return board_.ranks[static_cast<size_t>(rank)].numbers[static_cast<size_t>(index)];
}

void Seat::put_line(const std::string& line) {
  put_text(board_.ranks[static_cast<size_t>(rank_)].line, line);
}

void set_stop(bool (*stop)()) { stop_of_all = stop; }

std::vector<Outcome> run_job(int ranks, Duration patience,
                             const std::vector<std::string>& environment,
                             const std::function<Status(Seat&)>& body) {
  SEALANE_CHECK(ranks >= 1 && ranks <= kRanksMax, "too many ranks to play");
  void* const memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  SEALANE_CHECK(memory != MAP_FAILED, "out of memory");
  auto* const board = new (memory) Board;
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    SEALANE_CHECK(child >= 0, "no process for a rank");
    if (child == 0) be_rank(*board, rank, ranks, environment, body);
    processes.push_back(child);
  }
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  std::vector<bool> reaped(static_cast<size_t>(ranks));
  const auto reap = [&](bool hang) {
    bool all = true;
    for (size_t rank = 0; rank < processes.size(); ++rank) {
      if (reaped[rank]) continue;
      if (hang) kill(processes[rank], SIGKILL);
      int status = 0;
      if (waitpid(processes[rank], &status, hang ? 0 : WNOHANG) != processes[rank]) {
        all = false;
        continue;
      }
      reaped[rank] = true;
      outcomes[rank].ended = WIFEXITED(status);
      outcomes[rank].words = hang ? "hangs" : how_it_ended(status);
    }
    return all;
  };
  Instant end = SteadyClock().now() + patience;
  bool graced = false;
  while (!reap(false)) {
    const auto failed = [&](size_t rank) {  // who was killed was meant to be
      return reaped[rank] && !board->ranks[rank].passed && outcomes[rank].words != "killed";
    };
    for (size_t rank = 0; rank < processes.size() && !graced; ++rank) {
      graced = failed(rank);
      if (graced) end = std::min(end, SteadyClock().now() + kGrace);
    }
    if (SteadyClock().now() > end || (stop_of_all != nullptr && stop_of_all())) {
      reap(true);
      break;
    }
    std::this_thread::sleep_for(kNap);
  }
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    const Board::Rank& seat = board->ranks[rank];
    Outcome& outcome = outcomes[rank];
    outcome.passed = outcome.ended && seat.passed;
    if (seat.words[0] != '\0') outcome.words = seat.words.data();
    outcome.plugin_line = seat.line.data();
    outcome.numbers.assign(seat.numbers.begin(), seat.numbers.end());
  }
  munmap(memory, sizeof(Board));
  return outcomes;
}

}  // namespace sealane::nccl
