// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The network interfaces a plugin offers as devices, chosen as NCCL users know it: a list of name
// prefixes, `=` before it for whole names, `^` for all but these. Without a list every interface
// that is up and has an address, loopback and bridges of container engines only if there is nothing
// else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/wire.h"

namespace sealane::net {

struct Interface {
  std::string name;
  Address address;       // port 0
  std::string pci_path;  // empty for one that is no PCI device
  int speed_mbps = 10'000;
};

// True if `name` is chosen by the list; an empty list chooses everything.
bool interface_chosen(std::string_view name, std::string_view list);

// A usage error if the list chooses none.
Result<std::vector<Interface>> find_interfaces(std::string_view list);

}  // namespace sealane::net
