// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "nccl/hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/text.h"
#include "base/try.h"

namespace sealane::nccl {
namespace {

constexpr int kJumboFrame = 9000;                 // as fabrics for training have it
constexpr const char* kQueueBytes = "268435456";  // so long that nothing is ever dropped
constexpr const char* kQueuePackets = "1000000";

Status enter_namespace_of(pid_t process) {
  const int space = open(concat("/proc/", process, "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0) return io_error("the namespace of a host is gone", errno);
  const int result = setns(space, CLONE_NEWNET);
  const int error = errno;
  close(space);
  return result == 0 ? Status() : Status(io_error("cannot enter the namespace of a host", error));
}

// Runs a program in the namespace of another process. Its words are nobody's; its code counts.
Status run_there(pid_t process, std::vector<std::string> words) {
  const pid_t child = fork();
  if (child < 0) return io_error("no process to set up a host", errno);
  if (child == 0) {
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDERR_FILENO);
    if (!enter_namespace_of(process)) _exit(126);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return io_error(concat("setting up a host failed at: ", line));
}

// A child in a new namespace that does nothing until its maker dies.
Result<pid_t> start_holder() {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return io_error("no pipe for a host", errno);
  const pid_t maker = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const char made = unshare(CLONE_NEWNET) == 0 && getppid() == maker ? 'y' : 'n';
    static_cast<void>(!write(ready[1], &made, 1));
    while (made == 'y') pause();
    _exit(1);
  }
  char made = 'n';
  close(ready[1]);
  if (child > 0) static_cast<void>(!read(ready[0], &made, 1));
  close(ready[0]);
  if (made == 'y') return child;
  if (child > 0) waitpid(child, nullptr, 0);
  return io_error("no network namespace for a host");
}

}  // namespace

Status Hosts::possible(bool with_delay) {
  if (geteuid() != 0) return usage_error("--hosts makes network namespaces, which needs root");
  auto holder = start_holder();
  if (!holder) {
    return usage_error("--hosts makes network namespaces, which this container may not do");
  }
  const Status tools = run_there(*holder, {"ip", "link", "set", "lo", "up"});
  const Status delay =
      with_delay
          ? run_there(*holder, {"tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1us"})
          : Status();
  kill(*holder, SIGKILL);
  waitpid(*holder, nullptr, 0);
  if (!tools) return usage_error("--hosts needs the program ip (package iproute2)");
  if (!delay) return usage_error("--delay-us needs a kernel with netem (module sch_netem)");
  return {};
}

Result<Hosts> Hosts::make(int count, const Network& network) {
  Hosts hosts;
  SEALANE_TRY(hosts.hold(count));
  for (int host = 0; host < count; ++host) {
    SEALANE_TRY(hosts.connect(host, network));
  }
  return hosts;
}

Status Hosts::hold(int count) {
  for (int i = 0; i <= count; ++i) {
    SEALANE_LET(auto holder, start_holder());
    holders_.push_back(holder);
  }
  const pid_t middle = holders_[0];
  if (Status status = run_there(middle, {"ip", "link", "add", "bridge", "type", "bridge"});
      !status) {
    return status;
  }
  return run_there(middle, {"ip", "link", "set", "bridge", "up"});
}

Status Hosts::connect(int host, const Network& network) const {
  const pid_t middle = holders_[0];
  const pid_t there = holders_[static_cast<size_t>(host) + 1];
  const std::string port = concat("port", host);
  const std::string mtu = concat(kJumboFrame);
  const std::string rate = concat(static_cast<uint64_t>(network.gbit_per_s * 1000), "mbit");
  const std::string burst = concat(static_cast<uint64_t>(network.gbit_per_s * 125'000) + 65'536);
  struct Step {
    pid_t where;
    std::vector<std::string> words;
  };
  std::vector<Step> steps = {
      {middle,
       {"ip", "link", "add", port, "mtu", mtu, "type", "veth", "peer", "name", kInterface, "mtu",
        mtu, "netns", concat(there)}},
      {middle, {"ip", "link", "set", port, "master", "bridge", "up"}},
      {there, {"ip", "link", "set", "lo", "up"}},
      {there, {"ip", "address", "add", concat("10.83.0.", host + 1, "/24"), "dev", kInterface}},
      {there, {"ip", "link", "set", kInterface, "up"}},
      {there,
       {"tc", "qdisc", "add", "dev", kInterface, "root", "handle", "1:", "tbf", "rate", rate,
        "burst", burst, "limit", kQueueBytes}},
  };
  if (network.delay_us > 0) {
    steps.push_back({there,
                     {"tc", "qdisc", "add", "dev", kInterface, "parent", "1:1", "netem", "delay",
                      concat(network.delay_us, "us"), "limit", kQueuePackets}});
  }
  for (const Step& step : steps) {
    SEALANE_TRY(run_there(step.where, step.words));
  }
  return {};
}

Hosts::~Hosts() {
  for (const pid_t holder : holders_) {
    kill(holder, SIGKILL);
    waitpid(holder, nullptr, 0);
  }
}

Status Hosts::enter(int host) const {
  return enter_namespace_of(holders_[static_cast<size_t>(host) + 1]);
}

}  // namespace sealane::nccl
