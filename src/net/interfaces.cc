// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/interfaces.h"

#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "base/text.h"

namespace sealane::net {
namespace {

bool is_last_resort(std::string_view name) { return name == "lo" || name.starts_with("docker"); }

bool read_address(const sockaddr* from, Address& to) {
  if (from == nullptr) return false;
  if (from->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, from, sizeof in);
    to.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    std::memcpy(&to.ip[12], &in.sin_addr, 4);
    return true;
  }
  if (from->sa_family != AF_INET6) return false;
  sockaddr_in6 in{};
  std::memcpy(&in, from, sizeof in);
  std::memcpy(to.ip.data(), &in.sin6_addr, 16);
  to.scope = in.sin6_scope_id;
  return true;
}

void describe(Interface& interface) {
  const std::string base = "/sys/class/net/" + interface.name;
  int speed = 0;
  if (std::ifstream(base + "/speed") >> speed && speed > 0) interface.speed_mbps = speed;
  char path[PATH_MAX];
  if (realpath((base + "/device").c_str(), path) != nullptr) interface.pci_path = path;
}

}  // namespace

bool interface_chosen(std::string_view name, std::string_view list) {
  if (list.empty()) return true;
  const bool exclude = list.starts_with('^');
  if (exclude) list.remove_prefix(1);
  const bool whole = list.starts_with('=');
  if (whole) list.remove_prefix(1);
  bool named = false;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view entry = list.substr(0, comma);
    named = named || (!entry.empty() && (whole ? name == entry : name.starts_with(entry)));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return named != exclude;
}

Result<std::vector<Interface>> find_interfaces(std::string_view list) {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return io_error("cannot list network interfaces", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(raw, freeifaddrs);
  std::vector<Interface> found;
  for (const bool v4 :
       {true, false}) {  // an interface counts once, by its IPv4 address if it has one
    for (const ifaddrs* one = raw; one != nullptr; one = one->ifa_next) {
      Interface interface;
      if ((one->ifa_flags & IFF_UP) == 0 || !read_address(one->ifa_addr, interface.address))
        continue;
      if ((one->ifa_addr->sa_family == AF_INET) != v4) continue;
      interface.name = one->ifa_name;
      const bool known = std::any_of(found.begin(), found.end(),
                                     [&](const Interface& f) { return f.name == interface.name; });
      if (known || !interface_chosen(interface.name, list)) continue;
      describe(interface);
      found.push_back(std::move(interface));
    }
  }
  const auto spare = [](const Interface& i) { return is_last_resort(i.name); };
  if (list.empty() && !std::all_of(found.begin(), found.end(), spare)) std::erase_if(found, spare);
  if (found.empty()) {
    return usage_error(concat("no network interface that is up is chosen by '",
                              printable(list, 100), "' (NCCL_SOCKET_IFNAME)"));
  }
  return found;
}

}  // namespace sealane::net
