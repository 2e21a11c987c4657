// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "transport/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "base/text.h"

namespace sealane {
namespace {

constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr int kBacklog = 1024;
constexpr int kReadsPerLook = 4;  // so that who floods a connection that ends does not prolong it

struct UnixAddress {
  sockaddr_un address{};
  socklen_t length = 0;
};

// An abstract name starts with a zero byte and needs no file.
UnixAddress abstract_address(const std::string& name) {
  UnixAddress out;
  out.address.sun_family = AF_UNIX;
  const size_t count = std::min(name.size(), sizeof out.address.sun_path - 1);
  std::memcpy(out.address.sun_path + 1, name.data(), count);
  out.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  return out;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> resolve(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.empty() ? nullptr : host.c_str(), concat(port).c_str(), &hints, &found);
  if (error != 0) return io_error(concat("cannot resolve ", host, ": ", gai_strerror(error)));
  return AddressList(found, freeaddrinfo);
}

// A machine that vanishes (power, cable) says nothing, and who only receives from it would wait
// without end: TCP asks after it when it has been silent for kSilence_s, and gives up after kAsked
// questions. TCP_USER_TIMEOUT would tell who sends sooner, too, but ends connections whose receiver
// lives and does not read, which is no fault.
constexpr int kSilence_s = 15;
constexpr int kPause_s = 5;
constexpr int kAsked = 3;

void prepare_tcp(int descriptor) {
  const auto set = [&](int level, int option, int value) {
    setsockopt(descriptor, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kSilence_s);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kPause_s);
  set(IPPROTO_TCP, TCP_KEEPCNT, kAsked);
}

ptrdiff_t moved_by_send(ssize_t sent) {
  if (sent >= 0) return sent;
  return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -1;
}

ptrdiff_t moved_by_receive(ssize_t received) {
  if (received == 0) return -1;
  if (received < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
  return received;
}

Result<Socket> connect_to_any(const std::string& host, uint16_t port, int flags) {
  auto addresses = resolve(host, port, flags);
  if (!addresses) return addresses.error();
  int last_error = EADDRNOTAVAIL;
  for (const addrinfo* info = addresses->get(); info != nullptr; info = info->ai_next) {
    Socket socket(::socket(info->ai_family, kType, 0));
    if (!socket.valid()) continue;
    prepare_tcp(socket.descriptor());
    if (connect(socket.descriptor(), info->ai_addr, info->ai_addrlen) == 0 ||
        errno == EINPROGRESS) {
      return socket;
    }
    last_error = errno;
  }
  return io_error(concat("cannot connect to ", host, " port ", port), last_error);
}

}  // namespace

// All that are open, so that a child can close them. Never destroyed: static ones may end later.
class SocketsOfProcess {
 public:
  static SocketsOfProcess& all() {
    static SocketsOfProcess& only = *new SocketsOfProcess;
    return only;
  }

  void add(Socket* socket) {
    const std::lock_guard lock(mutex_);
    sockets_.insert(socket);
  }
  void close_and_remove(Socket* socket) {
    const std::lock_guard lock(mutex_);
    sockets_.erase(socket);
    close(std::exchange(socket->descriptor_, -1));
  }
  // `to` is not open.
  void move(Socket* from, Socket* to) {
    const std::lock_guard lock(mutex_);
    to->descriptor_ = std::exchange(from->descriptor_, -1);
    sockets_.erase(from);
    if (to->valid()) sockets_.insert(to);
  }

 private:
  SocketsOfProcess() {
    pthread_atfork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                   [] { all().close_in_child(); });
  }

  void close_in_child() {
    for (Socket* socket : sockets_) close(std::exchange(socket->descriptor_, -1));
    sockets_.clear();
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::set<Socket*> sockets_;
};

void Socket::register_fork_handlers() { SocketsOfProcess::all(); }

Socket::Socket(int descriptor) : descriptor_(descriptor) {
  if (valid()) SocketsOfProcess::all().add(this);
}
Socket::Socket(Socket&& other) noexcept {
  if (other.valid()) SocketsOfProcess::all().move(&other, this);
}
Socket& Socket::operator=(Socket&& other) noexcept {
  Socket old(std::move(*this));
  if (other.valid()) SocketsOfProcess::all().move(&other, this);
  return *this;
}
Socket::~Socket() {
  if (valid()) SocketsOfProcess::all().close_and_remove(this);
}

Result<Socket> Socket::listen_tcp(const std::string& host, uint16_t port) {
  auto addresses = resolve(host, port, AI_PASSIVE);
  if (!addresses) return addresses.error();
  // An IPv6 socket serves IPv4 too, so it is tried first.
  int last_error = EADDRNOTAVAIL;
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* info = addresses->get(); info != nullptr; info = info->ai_next) {
      if (info->ai_family != family) continue;
      Socket socket(::socket(family, kType, 0));
      const int on = 1;
      const int off = 0;
      setsockopt(socket.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      if (family == AF_INET6) {
        setsockopt(socket.descriptor_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      }
      if (bind(socket.descriptor_, info->ai_addr, info->ai_addrlen) == 0 &&
          ::listen(socket.descriptor_, kBacklog) == 0) {
        return socket;
      }
      last_error = errno;
    }
  }
  return io_error(concat("cannot listen on ", host.empty() ? "*" : host, " port ", port),
                  last_error);
}

Result<Socket> Socket::listen_unix(const std::string& abstract_name) {
  Socket socket(::socket(AF_UNIX, kType, 0));
  const UnixAddress name = abstract_address(abstract_name);
  if (bind(socket.descriptor_, reinterpret_cast<const sockaddr*>(&name.address), name.length) !=
          0 ||
      ::listen(socket.descriptor_, kBacklog) != 0) {
    return io_error("cannot listen on a Unix socket", errno);
  }
  return socket;
}

Result<Socket> Socket::connect_tcp(const std::string& host, uint16_t port) {
  return connect_to_any(host, port, 0);
}

Result<Socket> Socket::connect_tcp_address(const std::string& address, uint16_t port) {
  return connect_to_any(address, port, AI_NUMERICHOST);
}

Result<Socket> Socket::connect_unix(const std::string& abstract_name) {
  Socket socket(::socket(AF_UNIX, kType, 0));
  const UnixAddress name = abstract_address(abstract_name);
  if (connect(socket.descriptor_, reinterpret_cast<const sockaddr*>(&name.address), name.length) !=
      0) {
    return io_error("cannot connect to a Unix socket", errno);
  }
  return socket;
}

std::optional<Socket> Socket::accept() const {
  const int accepted = accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (accepted < 0) return std::nullopt;
  prepare_tcp(accepted);  // fails quietly on a Unix socket, which needs it not
  return Socket(accepted);
}

bool Socket::peer_is_same_user() const {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(descriptor_, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == geteuid();
}

int Socket::connect_error() const {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

uint16_t Socket::port() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length);
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string Socket::peer_host() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getpeername(descriptor_, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  char host[NI_MAXHOST] = {};
  getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof host, nullptr, 0,
              NI_NUMERICHOST);
  return host;
}

ptrdiff_t Socket::send(Bytes bytes, int pass_descriptor) const {
  iovec piece = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (pass_descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &pass_descriptor, sizeof(int));
  }
  return moved_by_send(sendmsg(descriptor_, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

ptrdiff_t Socket::send_both(Bytes first, Bytes second) const {
  iovec pieces[] = {{const_cast<uint8_t*>(first.data()), first.size()},
                    {const_cast<uint8_t*>(second.data()), second.size()}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = std::size(pieces);
  return moved_by_send(sendmsg(descriptor_, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

ptrdiff_t Socket::receive_both(MutableBytes first, MutableBytes second) const {
  iovec pieces[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = std::size(pieces);
  return moved_by_receive(recvmsg(descriptor_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
}

ptrdiff_t Socket::receive(MutableBytes out, std::vector<int>* passed) const {
  iovec piece = {out.data(), out.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)] = {};
  message.msg_control = passed != nullptr ? control : nullptr;
  message.msg_controllen = passed != nullptr ? sizeof control : 0;
  const ptrdiff_t received =
      moved_by_receive(recvmsg(descriptor_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
  if (received <= 0) return received;
  for (cmsghdr* header = passed != nullptr ? CMSG_FIRSTHDR(&message) : nullptr; header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
      passed->push_back(descriptor);
    }
  }
  return received;
}

void Socket::end_sending() const { shutdown(descriptor_, SHUT_WR); }

bool Socket::all_arrived() const {
  std::array<uint8_t, 16_KiB> nothing;
  ptrdiff_t count = 1;
  for (int reads = 0; count > 0 && reads < kReadsPerLook; ++reads) count = receive(nothing);
  int unsent = 0;
  // What a Unix socket has sent has arrived.
  int domain = AF_UNIX;
  socklen_t length = sizeof domain;
  getsockopt(descriptor_, SOL_SOCKET, SO_DOMAIN, &domain, &length);
  if (domain == AF_UNIX || ioctl(descriptor_, SIOCOUTQ, &unsent) != 0) return true;
  tcp_info info{};
  length = sizeof info;
  getsockopt(descriptor_, IPPROTO_TCP, TCP_INFO, &info, &length);
  return unsent == 0 || info.tcpi_state == TCP_CLOSE;  // reset: nothing goes out any more
}

void wait_for_sockets(const std::vector<Interest>& interests, Duration at_most) {
  std::vector<pollfd> entries;
  entries.reserve(interests.size());
  for (const Interest& interest : interests) {
    const short events = static_cast<short>(POLLIN | (interest.writing ? POLLOUT : 0));
    entries.push_back({interest.descriptor, events, 0});
  }
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  poll(entries.data(), entries.size(), static_cast<int>(std::max<int64_t>(ms, 0)));
}

}  // namespace sealane
