// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a rank can be reached, as it tells the others at the rendezvous.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "transport/socket.h"

namespace sealane {

struct Endpoint {
  std::string host;       // equal for ranks that can share memory
  std::string unix_name;  // of an abstract socket
  uint16_t port = 0;
  std::vector<std::string> addresses;
  std::string key_id;  // tells keys apart and nothing else of them; empty: none, or certificates

  std::string encode() const;
  static std::optional<Endpoint> decode(const std::string& text);
};

// Sockets others can reach this rank by. No TCP where none is wanted: nobody needs to know.
struct Listeners {
  Socket unix_socket;
  Socket tcp_socket;
  Endpoint endpoint;
};
Result<Listeners> open_listeners(bool tcp);

// Connects to a rank; waits for the outcome, not beyond the deadline. `local`: it is on this host.
Result<Socket> connect_to(const Endpoint& endpoint, bool local, bool tcp, Instant deadline);

}  // namespace sealane
