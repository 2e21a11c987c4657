// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/team.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <numeric>
#include <thread>

#include "base/try.h"
#include "bench/scratch.h"

namespace sealane::bench {
namespace {

constexpr int kPatienceMs = 60'000;
constexpr Duration kEndPatience = std::chrono::seconds(2);

// True once the process has been collected.
bool ended(pid_t process) { return waitpid(process, nullptr, WNOHANG) != 0; }

}  // namespace

Status Team::make_pipes() {
  for (uint32_t rank = 0; rank < size_; ++rank) {
    for (const auto& name : {command_pipe(base_, static_cast<int>(rank)),
                             answer_pipe(base_, static_cast<int>(rank))}) {
      if (mkfifo(name.c_str(), 0600) != 0) return io_error("cannot make a pipe", errno);
    }
  }
  return {};
}

// Opened for reading and writing, so that it does not matter who comes first.
Status Team::open_pipes() {
  pending_.resize(size_);
  for (uint32_t rank = 0; rank < size_; ++rank) {
    const int r = static_cast<int>(rank);
    commands_.push_back(open(command_pipe(base_, r).c_str(), O_RDWR | O_CLOEXEC));
    answers_.push_back(open(answer_pipe(base_, r).c_str(), O_RDWR | O_CLOEXEC));
    if (commands_.back() < 0 || answers_.back() < 0) return io_error("cannot open a pipe", errno);
  }
  return {};
}

Result<std::unique_ptr<Team>> Team::fork_ranks(const std::string& base, uint32_t size,
                                               const Body& body) {
  std::unique_ptr<Team> team(new Team(base, size));
  SEALANE_TRY(team->make_pipes());
  for (uint32_t rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child < 0) return io_error("cannot start a rank", errno);
    if (child == 0) {
      let_signals_end_this_process();
      WorkerPipes pipes(base, static_cast<int>(rank));
      body(pipes, rank);
      _exit(0);
    }
    team->processes_.push_back(child);
  }
  SEALANE_TRY(team->open_pipes());
  for (uint32_t rank = 0; rank < size; ++rank) {
    SEALANE_TRY(team->read_line(rank));
  }
  return team;
}

Result<std::unique_ptr<Team>> Team::start_programs(
    const std::string& base, uint32_t size,
    const std::vector<std::vector<std::string>>& command_lines) {
  std::unique_ptr<Team> team(new Team(base, size));
  SEALANE_TRY(team->make_pipes());
  const std::string log = base + ".log";
  for (const auto& line : command_lines) {
    std::vector<char*> arguments;
    for (const std::string& word : line) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    posix_spawnattr_t attributes;  // whatever we hold back ends it
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    pid_t child = 0;
    const int error =
        posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return io_error("cannot start " + line[0], error);
    team->processes_.push_back(child);
  }
  SEALANE_TRY(team->open_pipes());
  for (uint32_t rank = 0; rank < size; ++rank) {
    SEALANE_TRY(team->read_line(rank));
  }
  return team;
}

Team::~Team() {
  static_cast<void>(send("quit\n"));
  for (const int descriptor : commands_) close(descriptor);
  for (const int descriptor : answers_) close(descriptor);
  const Instant deadline = SteadyClock().now() + kEndPatience;
  for (const pid_t process : processes_) {
    while (!ended(process)) {
      if (SteadyClock().now() > deadline) kill(process, SIGTERM);
      if (SteadyClock().now() > deadline + kEndPatience) kill(process, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

Status Team::send(const std::string& line) {
  for (const int pipe : commands_) {
    if (write(pipe, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      return io_error("cannot reach a rank", errno);
    }
  }
  return {};
}

Result<std::string> Team::read_line(uint32_t rank) {
  std::string& text = pending_[rank];
  for (int waited_ms = 0; true;) {
    if (interrupted()) return io_error("interrupted");
    if (const size_t end = text.find('\n'); end != std::string::npos) {
      std::string line = text.substr(0, end);
      text.erase(0, end + 1);
      if (line.starts_with("error ")) return peer_error(line.substr(6));
      return line;
    }
    pollfd entry = {answers_[rank], POLLIN, 0};
    constexpr int kSliceMs = 200;
    if (poll(&entry, 1, kSliceMs) > 0) {
      std::array<char, 4096> piece;
      const ssize_t count = read(answers_[rank], piece.data(), piece.size());
      if (count > 0) text.append(piece.data(), static_cast<size_t>(count));
      continue;
    }
    waited_ms += kSliceMs;
    const bool gone = processes_.size() == size_
                          ? kill(processes_[rank], 0) != 0 || ended(processes_[rank])
                          : ended(processes_[0]);
    if (gone || waited_ms >= kPatienceMs) {
      const std::string why = last_line(base_ + ".log");
      return peer_error(fmt::format("rank {} {}{}{}", rank, gone ? "ended" : "does not answer",
                                    why.empty() ? "" : ": ", why));
    }
  }
}

Result<Team::Slice> Team::run(const WorkerCommand& command) {
  const std::string line = fmt::format("{} {} {} {}\n", command.op, command.bytes,
                                       command.iterations, command.check ? 1 : 0);
  SEALANE_TRY(send(line));
  Slice slice;
  uint64_t longest = 0;
  for (uint32_t rank = 0; rank < size_; ++rank) {
    SEALANE_LET(auto answer, read_line(rank));
    std::istringstream words(answer);
    uint64_t wrong = 0;
    words >> wrong;
    slice.wrong += wrong;
    std::vector<uint64_t> times;
    for (uint64_t ns = 0; words >> ns;) times.push_back(ns);
    const uint64_t total = std::accumulate(times.begin(), times.end(), uint64_t{0});
    if (total < longest) continue;
    longest = total;
    slice.times_ns = std::move(times);
  }
  return slice;
}

}  // namespace sealane::bench
