// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/key_source.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <thread>

#include "base/text.h"
#include "base/time.h"
#include "base/try.h"
#include "comm/key_file.h"
#include "os/descriptor.h"

namespace sealane {
namespace {

constexpr std::chrono::milliseconds kKeySlice(100);  // of waiting, then the time is looked at
constexpr size_t kAnswerBytesMax = 16 << 10;         // a key, and what a server says around it
constexpr std::string_view kScheme = "kbs://";

bool past(Instant deadline) { return SteadyClock().now() >= deadline; }

Error too_long(const std::string& who) {
  return io_error(who + " took longer than there was time: the time-out, a minute at most");
}

// Until the descriptor is ready or the time has come.
Status wait_until(int descriptor, short events, Instant deadline, const std::string& who) {
  while (!past(deadline)) {
    pollfd one{descriptor, events, 0};
    const int ready = poll(&one, 1, kKeySlice.count());
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return io_error("cannot wait for " + who, errno);
  }
  return too_long(who);
}

// Text that is a secret: of one size, so that it leaves no copies behind, and wiped.
class SecretText {
 public:
  SecretText() : text_(kAnswerBytesMax, '\0') {}
  ~SecretText() { wipe({reinterpret_cast<uint8_t*>(text_.data()), text_.size()}); }
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;

  std::string_view view() const { return {text_.data(), filled_}; }

  // Until the other side has said everything.
  Status read_all(int descriptor, const std::string& from, Instant deadline) {
    while (filled_ < text_.size()) {
      SEALANE_TRY(wait_until(descriptor, POLLIN, deadline, from));
      const ssize_t count = read(descriptor, text_.data() + filled_, text_.size() - filled_);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count < 0) return io_error("cannot read from " + from, errno);
      if (count == 0) return {};
      filled_ += static_cast<size_t>(count);
    }
    return usage_error(concat(from, " says more than a key"));
  }

 private:
  std::string text_;
  size_t filled_ = 0;
};

Result<int> wait_for(pid_t child, const std::string& name, Instant deadline) {
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0 && errno != EINTR) return io_error("cannot wait for " + name, errno);
    if (past(deadline)) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return too_long(name);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Result<pid_t> spawn(const std::string& command, int out) {
  std::string shell = "/bin/sh";
  std::string flag = "-c";
  std::string line = command;
  char* arguments[] = {shell.data(), flag.data(), line.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, shell.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return io_error("cannot run SEALANE_KEY_CMD", error);
  return child;
}

constexpr const char* kHubName = "the confidential data hub";

Error unreachable(const std::string& hub, int error) {
  return io_error(concat("cannot reach ", kHubName, " at ", hub, " (SEALANE_HUB says where it is)"),
                  error);
}

// A Unix socket whose queue is full says so at once, and there is nothing to wait for but time; the
// other kinds say that they are at it.
Result<Descriptor> connected(const sockaddr* address, socklen_t bytes, const std::string& hub,
                             Instant deadline) {
  Descriptor out(socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!out.valid()) return unreachable(hub, errno);
  while (connect(out.get(), address, bytes) != 0) {
    if (errno == EISCONN) break;
    if (errno == EINPROGRESS) {
      SEALANE_TRY(wait_until(out.get(), POLLOUT, deadline, kHubName));
      int error = 0;
      socklen_t length = sizeof error;
      getsockopt(out.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error != 0) return unreachable(hub, error);
      break;
    }
    if (errno != EAGAIN && errno != EINTR) return unreachable(hub, errno);
    if (past(deadline)) return too_long(kHubName);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return out;
}

Status send_all(int descriptor, std::string_view text, Instant deadline) {
  while (!text.empty()) {
    SEALANE_TRY(wait_until(descriptor, POLLOUT, deadline, kHubName));
    const ssize_t count = send(descriptor, text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR && errno != EAGAIN) {
      return io_error(concat("cannot ask ", kHubName), errno);
    }
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<Descriptor> connect_to(const std::string& hub, Instant deadline) {
  constexpr std::string_view kUnix = "unix:";
  if (hub.starts_with(kUnix)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = hub.substr(kUnix.size());
    if (path.empty() || path.size() >= sizeof address.sun_path) {
      return usage_error(concat("SEALANE_HUB: no socket has the name '", path, "'"));
    }
    std::copy(path.begin(), path.end(), address.sun_path);
    return connected(reinterpret_cast<const sockaddr*>(&address), sizeof address, hub, deadline);
  }
  const size_t colon = hub.rfind(':');
  const std::string host = hub.substr(0, colon);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  uint16_t port = 0;
  const char* const end = hub.data() + hub.size();
  const bool numbers = colon != std::string::npos &&
                       inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1 &&
                       std::from_chars(hub.data() + colon + 1, end, port).ptr == end && port != 0;
  if (!numbers || (ntohl(address.sin_addr.s_addr) >> 24) != IN_LOOPBACKNET) {
    return usage_error(concat("SEALANE_HUB: '", printable(hub, 80),
                              "' is not this guest's own; it is 127.x.y.z:PORT or unix:PATH"));
  }
  address.sin_port = htons(port);
  return connected(reinterpret_cast<const sockaddr*>(&address), sizeof address, hub, deadline);
}

// "kbs:///default/sealane/key" -> "default/sealane/key"
Result<std::string> path_of(const std::string& resource) {
  const size_t begin = resource.find('/', kScheme.size());
  const std::string path = begin == std::string::npos ? "" : resource.substr(begin + 1);
  const bool own_broker = begin == kScheme.size();  // the hub knows its broker, and no other
  const bool plain = path.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789-_./") == std::string::npos;
  const bool three = std::count(path.begin(), path.end(), '/') == 2 &&
                     path.find("//") == std::string::npos && !path.starts_with('/') &&
                     !path.ends_with('/') && path.find("..") == std::string::npos;
  if (own_broker && plain && three) return path;
  return usage_error(
      concat("'", printable(resource, 200), "' is no resource: kbs:///REPOSITORY/TYPE/TAG"));
}

}  // namespace

Result<std::string_view> body_of(std::string_view answer, const std::string& resource) {
  const bool http = answer.starts_with("HTTP/1.") && answer.size() > 12;
  if (!http) return usage_error("what answers at SEALANE_HUB does not speak HTTP");
  const std::string_view status = answer.substr(9, 3);
  if (status != "200") {
    return usage_error(concat("the confidential data hub refuses ", resource, " (HTTP status ",
                              printable(status, 3), "): was this guest attested, and may it?"));
  }
  const size_t end = answer.find("\r\n\r\n");
  if (end == std::string_view::npos) return usage_error("the hub's answer has no end");
  return answer.substr(end + 4);
}

bool is_hub_resource(const std::string& name) { return name.starts_with(kScheme); }

Result<Key> key_from_hub(const std::string& resource, const std::string& hub, Instant deadline) {
  SEALANE_LET(const auto path, path_of(resource));
  SEALANE_LET(const auto socket, connect_to(hub.empty() ? kHubDefault : hub, deadline));
  // Version 1.0: the answer comes in one piece and ends with the connection.
  const std::string request =
      concat("GET /cdh/resource/", path, " HTTP/1.0\r\nHost: localhost\r\nAccept: */*\r\n\r\n");
  SEALANE_TRY(send_all(socket.get(), request, deadline));
  SecretText answer;
  SEALANE_TRY(answer.read_all(socket.get(), kHubName, deadline));
  SEALANE_LET(const auto body, body_of(answer.view(), resource));
  return parse_key(body, resource);
}

Result<Key> key_from_command(const std::string& command, Instant deadline) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return io_error("cannot run SEALANE_KEY_CMD", errno);
  const Descriptor in(ends[0]);
  Descriptor out(ends[1]);
  const auto child = spawn(command, out.get());
  out = Descriptor(-1);  // else we would wait for ourselves
  if (!child) return child.error();
  SecretText answer;
  const Status told = answer.read_all(in.get(), "SEALANE_KEY_CMD", deadline);
  if (!told) kill(*child, SIGKILL);
  const auto status = wait_for(*child, "SEALANE_KEY_CMD", deadline);
  if (!told) return told.error();
  if (!status) return status.error();
  if (*status != 0) return usage_error(concat("SEALANE_KEY_CMD ended with status ", *status));
  return parse_key(answer.view(), "what SEALANE_KEY_CMD wrote");
}

}  // namespace sealane
