// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "support/run_program.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

namespace sealane::test {
namespace {

[[noreturn]] void fail(const std::string& what, int error_number) {
  throw std::system_error(error_number, std::generic_category(), what);
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

// A file in memory takes any amount of output with nobody reading meanwhile, where a pipe would
// fill up and block the program.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content = {})
      : file_(memfd_create("run_program", MFD_CLOEXEC)) {
    if (file_.get() < 0) fail("memfd_create", errno);
    while (!content.empty()) {
      const ssize_t written = write(file_.get(), content.data(), content.size());
      if (written < 0) fail("write", errno);
      content.remove_prefix(static_cast<size_t>(written));
    }
    lseek(file_.get(), 0, SEEK_SET);
  }

  int descriptor() const { return file_.get(); }

  std::string content() const {
    std::string text;
    char buffer[4096];
    ssize_t count;
    while ((count = pread(file_.get(), buffer, sizeof buffer, static_cast<off_t>(text.size()))) >
           0) {
      text.append(buffer, static_cast<size_t>(count));
    }
    return text;
  }

 private:
  Descriptor file_;
};

// The tests say which SEALANE_* variables there are and how wide a terminal is, not whoever started
// them; but what the CPU is to do without is the machine's.
std::vector<std::string> make_environment(const std::vector<std::string>& additions) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (variable.starts_with("COLUMNS=")) continue;
    if (!variable.starts_with("SEALANE_") || variable.starts_with("SEALANE_CPU=")) {
      environment.emplace_back(variable);
    }
  }
  for (const std::string& addition : additions) {
    const std::string name = addition.substr(0, addition.find('=') + 1);
    std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(name); });
    environment.push_back(addition);
  }
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

// Starts the program as the leader of its own process group, so that it can be ended with all the
// processes it started.
pid_t spawn(std::vector<std::string> argv, std::vector<std::string> environment, int in, int out,
            int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t process = -1;
  const int error = posix_spawnp(&process, argv.at(0).c_str(), &actions, &attributes,
                                 pointers(argv).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) fail("cannot start " + argv[0], error);
  return process;
}

bool ends_within(pid_t process, std::chrono::milliseconds limit) {
  // Not pidfd_open(): glibc 2.36 declares it without extern "C".
  const Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (handle.get() < 0) fail("pidfd_open", errno);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd ended{handle.get(), POLLIN, 0};
    const int ready = poll(&ended, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) fail("poll", errno);
  }
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& argv, const ProgramOptions& options) {
  const MemoryFile in(options.input);
  const MemoryFile out;
  const MemoryFile err;
  const pid_t process = spawn(argv, make_environment(options.environment), in.descriptor(),
                              out.descriptor(), err.descriptor());
  ProgramResult result;
  result.timed_out = !ends_within(process, options.limit);
  kill(-process, SIGKILL);  // also what it may have left running; it is not reaped yet, so its
                            // number still names this group
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) fail("waitpid", errno);
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.out = out.content();
  result.err = err.content();
  return result;
}

}  // namespace sealane::test
