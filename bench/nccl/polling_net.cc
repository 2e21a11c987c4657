// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A network plugin of the simplest kind: one socket per connection, everything done by the thread
// that polls. Built several times, never installed:
//   POLLING_TLS          TLS 1.3 by OpenSSL in records of 16 KiB, pre-shared key: the shape NCCL's
//                        own encrypted sockets have, to compare with. A record is delivered as LL
//                        and LL128 need it, a line's flag behind its data, as ours does
//   POLLING_ORDERED      the same order without protection
//   POLLING_FAULT=NAME   one fault each, to show that the conformance checks can fail:
//                        kReorder, kEarly, kBlock, kLeak, kUnverified, kDeaf, kTears,
//                        kRefuses, kTogether, kBlames
// With none of these it is an unprotected plugin that receives as NCCL's own sockets do, into the
// caller's memory at once. That is fast and in no order: a kernel copies with `rep movsb` where the
// CPU is good at it, whose stores are seen in any order, so a flag can be there before its data.
//
// Concurrency: NCCL's rules; nothing is shared between connections.

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#ifdef POLLING_TLS
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif

#include "nccl/abi.h"

namespace {

using namespace sealane::nccl;  // NOLINT: this file is nothing else

enum class Fault {
  kNone,
  kReorder,
  kEarly,
  kBlock,
  kLeak,
  kUnverified,
  kDeaf,
  kTears,
  kRefuses,
  kTogether,
  kBlames,
};
#ifdef POLLING_FAULT
constexpr Fault kFault = Fault::POLLING_FAULT;
#else
constexpr Fault kFault = Fault::kNone;
#endif

#ifdef POLLING_ORDERED
constexpr bool kOrdered = true;
#else
constexpr bool kOrdered = false;
#endif

constexpr size_t kRequests = 64;

// What kBlames keeps: the end of one connection is taken for that of all.
bool one_has_failed = false;

struct Request {
  uint8_t* data = nullptr;
  size_t bytes = 0;
  size_t moved = 0;
  uint64_t length = 0;  // the frame's head: bytes of the message, then a sum over them
  size_t head_moved = 0;
  std::vector<uint8_t> arrived;  // what is delivered when all of it is there
  bool used = false;
  bool done = false;
  struct Link* link = nullptr;
};

// A byte sum as a stand-in for a tag: it notices a flipped bit.
uint64_t head_of(const uint8_t* data, size_t bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes; ++i) sum += data[i];
  return uint64_t{bytes} << 32 | (sum & 0xffffffff);
}

// Ascending, eight bytes at once where they lie so.
void deliver_in_order(std::span<const uint8_t> from, uint8_t* to) {
  size_t at = 0;
  while (at < from.size()) {
    const bool whole = reinterpret_cast<uintptr_t>(to + at) % 8 == 0 && at + 8 <= from.size();
    if (whole) {
      uint64_t word = 0;
      std::memcpy(&word, &from[at], sizeof word);
      __atomic_store_n(reinterpret_cast<uint64_t*>(to + at), word, __ATOMIC_RELEASE);
    } else {
      __atomic_store_n(to + at, from[at], __ATOMIC_RELEASE);
    }
    at += whole ? 8 : 1;
  }
}

struct Link {
  int socket = -1;
  bool sends = false;
  bool failed = false;
  bool greeted = false;
  std::array<Request, kRequests> requests;
  std::deque<Request*> queue;
#ifdef POLLING_TLS
  SSL* tls = nullptr;
  std::array<uint8_t, 16 << 10> record;  // the last one, until it is delivered
  ~Link() { SSL_free(tls); }
#endif

  Request* take(void* data, size_t bytes) {
    for (Request& request : requests) {
      if (request.used) continue;
      request = {};
      request.used = true;
      request.data = static_cast<uint8_t*>(data);
      request.bytes = bytes;
      request.link = this;
      return &request;
    }
    return nullptr;
  }

  // Bytes moved, 0 for later, -1 for gone.
  ssize_t put(const void* data, size_t bytes) {
#ifdef POLLING_TLS
    ERR_clear_error();
    const int count = SSL_write(tls, data, static_cast<int>(std::min<size_t>(bytes, 16 << 10)));
    return result(count);
#else
    if (kFault == Fault::kBlock) {
      pollfd ready{socket, POLLOUT, 0};
      poll(&ready, 1, -1);
    }
    return result(send(socket, data, bytes, MSG_NOSIGNAL));
#endif
  }
  ssize_t get(void* data, size_t bytes) {
#ifdef POLLING_TLS
    // SSL_read copies with memcpy, whose stores are seen in any order.
    ERR_clear_error();
    const int count =
        SSL_read(tls, record.data(), static_cast<int>(std::min(bytes, record.size())));
    if (count > 0) deliver_in_order(std::span(record).first(count), static_cast<uint8_t*>(data));
    return result(count);
#else
    const ssize_t count = recv(socket, data, bytes, 0);
    return count == 0 ? -1 : result(count);
#endif
  }
  ssize_t result(ssize_t count) const {
    if (count > 0) return count;
#ifdef POLLING_TLS
    // Looks into the thread's queue of errors, too, which is why whoever comes here has emptied it:
    // what another connection left there is no error of this one.
    const int why = SSL_get_error(tls, static_cast<int>(count));
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
#else
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
#endif
  }

  void fail() {
    failed = kFault != Fault::kDeaf;
    one_has_failed = one_has_failed || kFault == Fault::kBlames;
  }

  void move_send(Request& request) {
    while (request.head_moved < 8) {
      if (request.head_moved == 0) request.length = head_of(request.data, request.bytes);
      const ssize_t count = put(reinterpret_cast<uint8_t*>(&request.length) + request.head_moved,
                                8 - request.head_moved);
      if (count < 0) return fail();
      if (count == 0) return;
      request.head_moved += static_cast<size_t>(count);
    }
    while (request.moved < request.bytes) {
      const ssize_t count = put(request.data + request.moved, request.bytes - request.moved);
      if (count < 0) return fail();
      if (count == 0) return;
      request.moved += static_cast<size_t>(count);
    }
    request.done = true;
  }

  void move_receive(Request& request) {
    while (request.head_moved < 8) {
      const ssize_t count = get(reinterpret_cast<uint8_t*>(&request.length) + request.head_moved,
                                8 - request.head_moved);
      if (count < 0) return fail();
      if (count == 0) return;
      request.head_moved += static_cast<size_t>(count);
    }
    const size_t length = request.length >> 32;
    if (length > request.bytes) return fail();
    if (kOrdered) request.arrived.resize(length);
    uint8_t* const to = kOrdered ? request.arrived.data() : request.data;
    while (request.moved < length) {
      const size_t from = kFault == Fault::kTears ? tear(request, length) : request.moved;
      const ssize_t count = get(to + from, length - request.moved);
      if (count < 0) return fail();
      if (count == 0) return;
      request.moved += static_cast<size_t>(count);
    }
    if (kOrdered) deliver_in_order(request.arrived, request.data);
    // Too late to be of use to anybody who reads meanwhile: that is the fault kUnverified shows.
    if (kFault == Fault::kUnverified && head_of(request.data, length) != request.length) {
      return fail();
    }
    request.bytes = length;
    request.done = true;
  }

  // Flags first: writes the last line of what is to come before the rest, and leaves whoever reads
  // flags the time to see them.
  static size_t tear(Request& request, size_t length) {
    if (request.moved == 0 && length > 4096) {
      for (size_t line = 128; line <= length; line += 128) {
        uint64_t flag = 0;
        std::memcpy(&flag, request.data + line - 8, 8);
        ++flag;
        std::memcpy(request.data + line - 8, &flag, 8);
      }
      usleep(50'000);
    }
    return request.moved;
  }

  void progress() {
    while (!queue.empty() && !failed) {
      if (kFault == Fault::kReorder && sends && queue.size() > 1 && queue[0]->head_moved == 0 &&
          queue[1]->head_moved == 0) {
        std::swap(queue[0], queue[1]);
      }
      Request& request = *queue.front();
      if (sends) {
        move_send(request);
      } else {
        move_receive(request);
      }
      if (!request.done) return;
      queue.pop_front();
    }
  }
};

struct Handle {
  uint64_t magic;
  sockaddr_in address;
};
constexpr uint64_t kMagic = 0x706f6c6c696e6721;

struct Listener {
  int socket = -1;
  std::unique_ptr<Link> coming;
};

void prepare(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

#ifdef POLLING_TLS
// Both sides of this measurement know it; nobody else should use it.
constexpr std::array<unsigned char, 32> kMeasuringKey = {1, 2, 3};

SSL_SESSION* measuring_session(SSL* ssl) {
  constexpr std::array<unsigned char, 2> kSuite = {0x13, 0x01};  // AES-128-GCM, as NCCL has it
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kSuite.data());
  SSL_SESSION* session = SSL_SESSION_new();
  SSL_SESSION_set1_master_key(session, kMeasuringKey.data(), kMeasuringKey.size());
  SSL_SESSION_set_cipher(session, cipher);
  SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION);
  return session;
}
int use_session(SSL* ssl, const EVP_MD*, const unsigned char** id, size_t* length,
                SSL_SESSION** session) {
  *session = measuring_session(ssl);
  *id = reinterpret_cast<const unsigned char*>("measuring");
  *length = 9;
  return 1;
}
int find_session(SSL* ssl, const unsigned char*, size_t, SSL_SESSION** session) {
  *session = measuring_session(ssl);
  return 1;
}

int send_quietly(BIO* bio, const char* data, int bytes) {
  int socket = -1;
  BIO_get_fd(bio, &socket);
  BIO_clear_retry_flags(bio);
  const auto count = static_cast<int>(send(socket, data, static_cast<size_t>(bytes), MSG_NOSIGNAL));
  if (count <= 0 && BIO_sock_should_retry(count) != 0) BIO_set_retry_write(bio);
  return count;
}

// OpenSSL's own writes with write(2): to a peer that is gone that is a SIGPIPE, which is not for a
// plugin to switch off in somebody else's process.
const BIO_METHOD* quiet_socket() {
  static BIO_METHOD* const method = [] {
    const BIO_METHOD* const usual = BIO_s_socket();
    BIO_METHOD* const quiet = BIO_meth_new(
        BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "quiet socket");
    BIO_meth_set_write(quiet, send_quietly);
    BIO_meth_set_read(quiet, BIO_meth_get_read(usual));
    BIO_meth_set_ctrl(quiet, BIO_meth_get_ctrl(usual));
    BIO_meth_set_create(quiet, BIO_meth_get_create(usual));
    BIO_meth_set_destroy(quiet, BIO_meth_get_destroy(usual));
    return quiet;
  }();
  return method;
}
#endif

// False until the connection can carry data.
bool greet(Link& link) {
  if (link.greeted) return true;
#ifdef POLLING_TLS
  if (link.tls == nullptr) {
    SSL_CTX* context = SSL_CTX_new(TLS_method());
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_psk_use_session_callback(context, use_session);
    SSL_CTX_set_psk_find_session_callback(context, find_session);
    link.tls = SSL_new(context);
    SSL_CTX_free(context);
    BIO* const bio = BIO_new(quiet_socket());
    BIO_set_fd(bio, link.socket, BIO_NOCLOSE);
    SSL_set_bio(link.tls, bio, bio);
    if (link.sends) {
      SSL_set_connect_state(link.tls);
    } else {
      SSL_set_accept_state(link.tls);
    }
  }
  ERR_clear_error();
  const int result = SSL_do_handshake(link.tls);
  if (result != 1) {
    if (link.result(result) < 0) link.failed = true;
    return false;
  }
#endif
  link.greeted = true;
  return true;
}

Code init(Logger) { return kSuccess; }
Code devices(int* count) {
  *count = 1;
  return kSuccess;
}
Code properties(int device, PropertiesV8* out) {
  if (device != 0) return kInvalidArgument;
  static char name[] = "polling";
  *out = {};
  out->name = name;
  out->ptrSupport = kPointerHost;
  out->speed = 10'000;
  out->maxComms = 1024;
  out->maxRecvs = 1;
  return kSuccess;
}

// The address of the interface the harness names, or loopback.
in_addr own_address() {
  in_addr address{htonl(INADDR_LOOPBACK)};
  const char* wanted = getenv("NCCL_SOCKET_IFNAME");
  ifaddrs* all = nullptr;
  if (wanted == nullptr || getifaddrs(&all) != 0) return address;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET &&
        std::strncmp(one->ifa_name, wanted, std::strlen(wanted)) == 0) {
      sockaddr_in in{};
      std::memcpy(&in, one->ifa_addr, sizeof in);
      address = in.sin_addr;
    }
  }
  freeifaddrs(all);
  return address;
}

Code listen_at(int, void* handle, void** comm) {
  auto listener = std::make_unique<Listener>();
  listener->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  Handle where{kMagic, {}};
  where.address.sin_family = AF_INET;
  where.address.sin_addr = own_address();
  auto* address = reinterpret_cast<sockaddr*>(&where.address);
  socklen_t length = sizeof where.address;
  if (bind(listener->socket, address, length) != 0 || listen(listener->socket, 64) != 0 ||
      getsockname(listener->socket, address, &length) != 0) {
    return kSystemError;
  }
  std::memcpy(handle, &where, sizeof where);
  *comm = listener.release();
  return kSuccess;
}

// The link under way is kept behind the address in the handle: fine for a plugin nobody attacks.
Code connect_to(int, void* handle, void** comm, void**) {
  Handle where{};
  std::memcpy(&where, handle, sizeof where);
  if (where.magic != kMagic) return kInvalidArgument;
  Link* link = nullptr;
  std::memcpy(&link, static_cast<char*>(handle) + sizeof where, sizeof link);
  *comm = nullptr;
  if (link == nullptr) {
    link = new Link;
    link->sends = true;
    link->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    prepare(link->socket);
    connect(link->socket, reinterpret_cast<const sockaddr*>(&where.address), sizeof where.address);
    std::memcpy(static_cast<char*>(handle) + sizeof where, &link, sizeof link);
  }
  pollfd ready{link->socket, POLLOUT, 0};
  const bool decided = poll(&ready, 1, 0) == 1;
  if (decided && (ready.revents & (POLLERR | POLLHUP)) != 0) {
    link->failed = true;
  } else if (decided && greet(*link)) {
    *comm = link;
    link = nullptr;
    std::memcpy(static_cast<char*>(handle) + sizeof where, &link, sizeof link);
  }
  return link != nullptr && link->failed ? kRemoteError : kSuccess;
}

Code accept_one(void* listen_comm, void** comm, void**) {
  auto& listener = *static_cast<Listener*>(listen_comm);
  *comm = nullptr;
  if (listener.coming == nullptr) {
    const int socket = accept4(listener.socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return kSuccess;
    listener.coming = std::make_unique<Link>();
    listener.coming->socket = socket;
    prepare(socket);
  }
  if (greet(*listener.coming)) {
    *comm = listener.coming.release();
    return kSuccess;
  }
  return listener.coming->failed ? kRemoteError : kSuccess;
}

Code register_any(void*, void*, size_t, int type, void** memory) {
  *memory = nullptr;
  return type == kPointerHost ? kSuccess : kInvalidUsage;
}
Code register_dma(void*, void*, size_t, int, uint64_t, int, void**) { return kInvalidUsage; }
Code release_any(void*, void*) { return kSuccess; }

Code start(Link& link, void* data, size_t bytes, void** request) {
  *request = nullptr;
  if (link.failed || one_has_failed) return kRemoteError;
  Request* taken = link.take(data, bytes);
  if (taken == nullptr) return kSuccess;
  link.queue.push_back(taken);
  *request = taken;
  return kSuccess;
}
Code send_one(void* comm, void* data, int size, int, void*, void** request) {
  auto& link = *static_cast<Link*>(comm);
  const Code code = start(link, data, static_cast<size_t>(size), request);
  if (kFault == Fault::kBlock) {
    while (!link.queue.empty() && !link.failed) link.progress();
  }
  return code;
}
Code receive_one(void* comm, int, void** data, int* sizes, int*, void**, void** request) {
  return start(*static_cast<Link*>(comm), data[0], static_cast<size_t>(sizes[0]), request);
}
Code flush_one(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return kSuccess;
}
Code test_one(void* request, int* done, int* sizes) {
  auto& one = *static_cast<Request*>(request);
  Link& link = *one.link;
  *done = 0;
  // Says so before anything has moved; the next call moves it.
  const bool early = kFault == Fault::kEarly && link.sends && !one.done;
  if (!one.done && (!early || link.queue.front() != &one)) link.progress();
  if (one.done || early) {
    *done = 1;
    if (sizes != nullptr) *sizes = static_cast<int>(one.bytes);
    if (kFault != Fault::kLeak && one.done) one.used = false;
    return kSuccess;
  }
  return link.failed ? kRemoteError : kSuccess;
}
Code close_link(void* comm) {
  auto* link = static_cast<Link*>(comm);
  // As if a connection were a communicator's: the others of the process end with it.
  constexpr int kSocketsMax = 1024;
  for (int one = 3; kFault == Fault::kTogether && one < kSocketsMax; ++one) {
    shutdown(one, SHUT_RDWR);
  }
  close(link->socket);
  delete link;
  return kSuccess;
}
Code close_listener(void* comm) {
  auto* listener = static_cast<Listener*>(comm);
  close(listener->socket);
  delete listener;
  return kSuccess;
}
Code refuse_consumed(void*, int, void*) { return kInternalError; }

}  // namespace

extern "C" [[gnu::visibility("default")]] const NetV8 ncclNetPlugin_v8;
const NetV8 ncclNetPlugin_v8 = {"Polling",
                                init,
                                devices,
                                properties,
                                listen_at,
                                connect_to,
                                accept_one,
                                register_any,
                                register_dma,
                                release_any,
                                send_one,
                                receive_one,
                                flush_one,
                                test_one,
                                close_link,
                                close_link,
                                close_listener,
                                nullptr,
                                kFault == Fault::kRefuses ? refuse_consumed : nullptr};
