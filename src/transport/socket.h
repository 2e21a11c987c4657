// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Stream sockets, always non-blocking and close-on-exec: TCP over IPv4 and IPv6, and abstract Unix
// sockets, which vanish with their process and can pass descriptors.
//
// A socket stays with the process that made it: after fork() the child's are closed and not valid()
// any more, whatever thread was using them, so that a dead rank is not kept alive by its children.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"

namespace sealane {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  // Any port if 0; `host` empty means all interfaces.
  static Result<Socket> listen_tcp(const std::string& host, uint16_t port);
  static Result<Socket> listen_unix(const std::string& abstract_name);

  // Starts to connect; the socket becomes writable when that is decided (connect_error()).
  static Result<Socket> connect_tcp(const std::string& host, uint16_t port);
  // Numbers only, for addresses that somebody else wrote: a name is asked of servers that may not
  // answer for long, and tells them.
  static Result<Socket> connect_tcp_address(const std::string& address, uint16_t port);
  static Result<Socket> connect_unix(const std::string& abstract_name);

  std::optional<Socket> accept() const;  // nothing if nobody waits
  bool peer_is_same_user() const;        // of a connected Unix socket: the kernel vouches
  int connect_error() const;             // 0 if connected, else an errno value
  uint16_t port() const;                 // of a listening TCP socket
  std::string peer_host() const;         // numeric address of the other end; empty if not connected

  // Bytes moved, possibly none; -1 if the peer is gone.
  ptrdiff_t send(Bytes bytes, int pass_descriptor = -1) const;
  // The one behind the other, with one call.
  ptrdiff_t send_both(Bytes first, Bytes second) const;
  ptrdiff_t receive_both(MutableBytes first, MutableBytes second) const;
  // As send. A descriptor that came along is appended to `passed`, to be closed by the caller.
  ptrdiff_t receive(MutableBytes out, std::vector<int>* passed = nullptr) const;

  // Nothing more is sent; what was is on its way, and the other side reads to its end.
  void end_sending() const;
  // Drops what has arrived, a piece of it per call. True once the other side has all that was sent,
  // or is gone. A connection that is closed before that, or with something unread, may take what
  // was sent with it.
  bool all_arrived() const;

  // Handlers of fork() that are registered after this call find a child's sockets closed.
  static void register_fork_handlers();

  bool valid() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  friend class SocketsOfProcess;
  int descriptor_ = -1;
};

// Waits until one of the sockets has something to read, or, where `writing`, can be written.
struct Interest {
  int descriptor = -1;
  bool writing = false;
};
void wait_for_sockets(const std::vector<Interest>& interests, Duration at_most);

}  // namespace sealane
