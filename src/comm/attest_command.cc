// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/attest_command.h"

#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "base/time.h"
#include "base/try.h"
#include "comm/exit_hold.h"
#include "core/session/attested_key.h"
#include "transport/socket.h"

namespace sealane {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);
constexpr Duration kPause = std::chrono::milliseconds(2);  // from one look to the next
// Evidence may say until when it counts, and who judges it may learn something: for so long neither
// is asked again. All sessions of a join, or of a communicator of NCCL's, fall into it.
constexpr Duration kBelief = std::chrono::minutes(2);
constexpr size_t kEvidenceBytesMax = 1_MiB - 1_KiB;  // a frame has room for the signature, too

AttestedKey new_key() {
  SystemRandom kernel;
  return AttestedKey::random(kernel);
}

// What this process has said of itself and believes of others, by one command.
struct Known {
  AttestedKey key = new_key();
  std::mutex mutex;
  std::vector<uint8_t> evidence;  // about the key; none until it was asked for
  Instant produced{};
  // Of rank and evidence, with the key it speaks for: when that was.
  std::map<Sha256::Digest, Instant> accepted;
};
constexpr size_t kAcceptedMax = 4096;

class Registry {
 public:
  std::shared_ptr<Known> of(const std::string& command) {
    const std::lock_guard lock(mutex_);
    auto& known = by_command_[command];
    if (known == nullptr) known = std::make_shared<Known>();
    return known;
  }
  bool alive() const { return mark_.alive(); }

 private:
  AttestedKey mark_ = new_key();  // not there in a child
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Known>> by_command_;
};

// Of this process: a child begins anew, for somebody may have held the locks when it was made.
Registry& registry() {
  static std::atomic<Registry*> current{nullptr};
  Registry* found = current.load();
  while (found == nullptr || !found->alive()) {
    auto fresh = std::make_unique<Registry>();
    if (current.compare_exchange_strong(found, fresh.get())) return *fresh.release();
  }
  return *found;
}

Sha256::Digest believed(uint32_t peer, const Presented& presented) {
  Sha256 hash;
  hash.add(Bytes(reinterpret_cast<const uint8_t*>(&peer), sizeof peer));
  hash.add(presented.binding);
  hash.add(presented.evidence);
  return hash.digest();
}

std::string hex(Bytes bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

Error too_late() {
  return io_error(
      "the attestation command took longer than there was time: the time-out, a minute at most");
}

// Whoever has it may wait for the command, for a group that has more time than this one.
Result<std::unique_lock<std::mutex>> locked(std::mutex& mutex, Instant until) {
  std::unique_lock lock(mutex, std::try_to_lock);
  while (!lock.owns_lock() && !lock.try_lock()) {
    if (process_exits()) return exiting_error();
    if (SteadyClock().now() > until) return too_late();
    std::this_thread::sleep_for(kPause);
  }
  return lock;
}

// Exit status of the child, or an error if it had to be ended.
Result<int> wait_for(pid_t child, Instant until) {
  const Instant deadline = std::min(until, SteadyClock().now() + kPatience);
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0) return io_error("cannot wait for the attestation command", errno);
    if (process_exits() || SteadyClock().now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      if (process_exits()) return exiting_error();
      return too_late();
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

// Input and output are anonymous files, not pipes: neither side can wait for the other.
Result<std::vector<uint8_t>> AttestCommand::run(const char* verb, Bytes binding,
                                                const std::string& rank, Bytes input) const {
  const Socket in(memfd_create("evidence-in", MFD_CLOEXEC));
  const Socket out(memfd_create("evidence-out", MFD_CLOEXEC));
  if (!in.valid() || !out.valid() ||
      write(in.descriptor(), input.data(), input.size()) != static_cast<ssize_t>(input.size())) {
    return io_error("cannot run the attestation command", errno);
  }
  lseek(in.descriptor(), 0, SEEK_SET);

  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  environment.push_back("SEALANE_ATTEST_BINDING=" + hex(binding));
  environment.push_back("SEALANE_ATTEST_RANK=" + rank);
  std::vector<char*> environment_pointers;
  environment_pointers.reserve(environment.size() + 1);
  for (std::string& entry : environment) environment_pointers.push_back(entry.data());
  environment_pointers.push_back(nullptr);
  std::string line = concat(command_, " ", verb);
  std::string shell = "/bin/sh";
  std::string flag = "-c";
  char* arguments[] = {shell.data(), flag.data(), line.data(), nullptr};

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, shell.c_str(), &actions, nullptr, arguments, environment_pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return io_error("cannot run the attestation command", error);

  SEALANE_LET(auto status, wait_for(child, until_));
  if (status != 0) return peer_error(concat("'", line, "' ended with status ", status));
  struct stat file {};
  fstat(out.descriptor(), &file);
  std::vector<uint8_t> output(
      std::min<size_t>(static_cast<size_t>(file.st_size), kEvidenceBytesMax + 1));
  if (pread(out.descriptor(), output.data(), output.size(), 0) !=
      static_cast<ssize_t>(output.size())) {
    return io_error("cannot read what the attestation command wrote", errno);
  }
  return output;
}

AttestCommand::AttestCommand(std::string command, const Clock* clock, Instant until)
    : command_(std::move(command)), clock_(clock), until_(until) {
  static const SteadyClock steady;
  if (clock_ == nullptr) clock_ = &steady;
}

Result<std::vector<uint8_t>> AttestCommand::produce(Bytes binding) {
  const auto known = registry().of(command_);
  SEALANE_LET(const auto lock, locked(known->mutex, until_));  // others wait for the one that asks
  const Instant now = clock_->now();
  if (known->evidence.empty() || now - known->produced >= kBelief) {
    auto evidence = run("produce", known->key.binding(), "", {});
    if (!evidence) return evidence;
    if (evidence->empty() || evidence->size() > kEvidenceBytesMax) {
      return usage_error(concat("'", command_, " produce' should write 1 byte to ",
                                kEvidenceBytesMax, " bytes of evidence, not ", evidence->size()));
    }
    known->evidence = std::move(*evidence);
    known->produced = now;
  }
  return known->key.present(binding, known->evidence);
}

Status AttestCommand::check(uint32_t peer, Bytes binding, Bytes evidence) {
  SEALANE_LET(const auto presented, read_presented(binding, evidence));
  const auto known = registry().of(command_);
  const Sha256::Digest what = believed(peer, presented);
  const Instant now = clock_->now();
  {
    SEALANE_LET(const auto lock, locked(known->mutex, until_));
    const auto before = known->accepted.find(what);
    if (before != known->accepted.end() && now - before->second < kBelief) return {};
  }
  SEALANE_LET(auto accepted, run("check", presented.binding, concat(peer), presented.evidence));
  SEALANE_LET(const auto lock, locked(known->mutex, until_));
  if (known->accepted.size() >= kAcceptedMax) known->accepted.clear();
  known->accepted[what] = now;
  return {};
}

}  // namespace sealane
