// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/attest_command.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/text.h"
#include "base/time.h"
#include "transport/socket.h"

namespace sealane {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);
constexpr size_t kEvidenceBytesMax = 1_MiB;

std::string hex(Bytes bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

// Exit status of the child, or an error if it had to be ended.
Result<int> wait_for(pid_t child) {
  const Instant deadline = SteadyClock().now() + kPatience;
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0) return io_error("cannot wait for the attestation command", errno);
    if (SteadyClock().now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return io_error("the attestation command took longer than 60 seconds");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
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

  auto status = wait_for(child);
  if (!status) return status.error();
  if (*status != 0) return peer_error(concat("'", line, "' ended with status ", *status));
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

Result<std::vector<uint8_t>> AttestCommand::produce(Bytes binding) {
  auto evidence = run("produce", binding, "", {});
  if (!evidence) return evidence;
  if (evidence->empty() || evidence->size() > kEvidenceBytesMax) {
    return usage_error(concat("'", command_, " produce' should write 1 byte to 1 MiB of evidence, ",
                              "not ", evidence->size(), " bytes"));
  }
  return evidence;
}

Status AttestCommand::check(uint32_t peer, Bytes binding, Bytes evidence) {
  if (evidence.empty()) return peer_error("it sent no evidence");
  auto accepted = run("check", binding, concat(peer), evidence);
  if (!accepted) return accepted.error();
  return {};
}

}  // namespace sealane
