// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/rendezvous.h"

#include <charconv>

#include "base/text.h"
#include "comm/exit_hold.h"
#include "comm/meeting_places.h"

namespace sealane {

std::string described(const Identity& self) {
  return concat("rank ", self.rank, " of ", self.size, " of group '", self.group, "'");
}

Error nobody_came(uint32_t rank, const std::string& where, const std::string& hint) {
  return peer_error(concat("rank ", rank, " did not come to ", where,
                           " in time: was it started, and with the same rendezvous?", hint));
}

Error groups_differ(const Identity& theirs, const Identity& own, const std::string& where) {
  return usage_error(concat(described(theirs), " and ", described(own), " wait at ", where,
                            ": give all ranks the same group name and size"));
}

bool meeting_over(Instant deadline) { return process_exits() || SteadyClock().now() > deadline; }

Result<std::unique_ptr<Rendezvous>> make_rendezvous(const JoinOptions& options) {
  if (options.store.set) {
    return meet_in_store(options.store, options.given_up);
  }
  const std::string& where = options.rendezvous;
  if (where.starts_with("file:") && where.size() > 5) {
    return meet_in_directory(where.substr(5));
  }
  const size_t colon = where.rfind(':');
  uint16_t port = 0;
  if (where.starts_with("tcp:") && colon != std::string::npos && colon > 4) {
    const char* end = where.data() + where.size();
    const auto [stop, error] = std::from_chars(where.data() + colon + 1, end, port);
    std::string host = where.substr(4, colon - 4);
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    if (error == std::errc() && stop == end) {
      return meet_at_rank_0(std::move(host), port);
    }
  }
  return usage_error(
      concat("rendezvous '", where, "' is neither file:DIRECTORY nor tcp:HOST:PORT"));
}

}  // namespace sealane
