// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/endpoint.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/random.h"
#include "base/text.h"
#include "base/try.h"

namespace sealane {
namespace {

constexpr std::string_view kKeyWord = "key=";

// One boot of one kernel, and the namespace whose abstract sockets both can see.
std::string host_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> space{};
  const ssize_t length = readlink("/proc/self/ns/net", space.data(), space.size() - 1);
  return concat(boot, "/", std::string_view(space.data(), length > 0 ? size_t(length) : 0));
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 ||
        (entry->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::array<char, NI_MAXHOST> text{};
    const int error =
        getnameinfo(entry->ifa_addr, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
    // Link-local addresses name an interface of this host, which means nothing elsewhere.
    if (error == 0 && std::strchr(text.data(), '%') == nullptr) addresses.emplace_back(text.data());
  }
  freeifaddrs(all);
  // Alone with itself, a machine can still have ranks that do not share memory.
  if (addresses.empty()) addresses = {"127.0.0.1", "::1"};
  return addresses;
}

Result<Socket> connected(Result<Socket> socket, Instant deadline) {
  if (!socket) return socket;
  const Instant soon = std::min(deadline, SteadyClock().now() + std::chrono::seconds(3));
  do {
    wait_for_sockets({{socket->descriptor(), true}}, std::chrono::milliseconds(100));
    if (const int error = socket->connect_error(); error != 0) {
      return io_error("no connection", error);
    }
    if (!socket->peer_host().empty()) return socket;
  } while (SteadyClock().now() < soon);
  return io_error("no answer");
}

}  // namespace

std::string Endpoint::encode() const {
  std::string text = concat(host, " ", unix_name, " ", port);
  for (const std::string& address : addresses) text += " " + address;
  if (!key_id.empty()) text += concat(" ", kKeyWord, key_id);
  return text;
}

std::optional<Endpoint> Endpoint::decode(const std::string& text) {
  Endpoint endpoint;
  std::istringstream words(text);
  if (!(words >> endpoint.host >> endpoint.unix_name >> endpoint.port)) return std::nullopt;
  for (std::string word; words >> word;) {
    if (word.starts_with(kKeyWord)) {
      endpoint.key_id = word.substr(kKeyWord.size());
    } else {
      endpoint.addresses.push_back(word);
    }
  }
  return endpoint;
}

Result<Listeners> open_listeners(bool tcp) {
  Listeners listeners;
  std::array<uint8_t, 16> random;
  SystemRandom().fill(random);
  listeners.endpoint.unix_name = concat("sealane-", load_le<uint64_t>(random.data()), "-",
                                        load_le<uint64_t>(random.data() + 8));
  SEALANE_LET(listeners.unix_socket, Socket::listen_unix(listeners.endpoint.unix_name));
  listeners.endpoint.host = host_id();
  if (!tcp) return listeners;
  SEALANE_LET(listeners.tcp_socket, Socket::listen_tcp("", 0));
  listeners.endpoint.port = listeners.tcp_socket.port();
  listeners.endpoint.addresses = own_addresses();
  return listeners;
}

Result<Socket> connect_to(const Endpoint& endpoint, bool local, bool tcp, Instant deadline) {
  if (local && !tcp) return Socket::connect_unix(endpoint.unix_name);
  std::vector<std::string> addresses = endpoint.addresses;
  if (local) addresses = {"127.0.0.1", "::1"};
  Result<Socket> last = io_error("it has no address");
  // Whoever can write to the rendezvous chose them, and how many: numbers, and while there is time.
  for (const std::string& address : addresses) {
    if (SteadyClock().now() >= deadline) break;
    last = connected(Socket::connect_tcp_address(address, endpoint.port), deadline);
    if (last) return last;
  }
  return last;
}

}  // namespace sealane
