// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How connections come about (network.h has the promises): a listener with whoever stands before
// it, and an attempt to reach one. Everything here is served by the crew's first worker; the
// finished streams go to the workers in turn.
#pragma once

#include <memory>

#include "net/network.h"

namespace sealane::net {

Result<std::shared_ptr<Listener>> open_door(std::shared_ptr<Network> network,
                                            std::shared_ptr<Network::Crew> crew,
                                            const Interface& interface, MutableBytes handle,
                                            uint64_t communicator);

Result<std::shared_ptr<Attempt>> knock(std::shared_ptr<Network> network,
                                       std::shared_ptr<Network::Crew> crew, const Handle& handle,
                                       uint64_t communicator);

}  // namespace sealane::net
