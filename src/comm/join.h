// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// From options to a group that can work:
//   1. listen, and exchange addresses at the rendezvous (untrusted)
//   2. one session with every other rank: the higher rank connects (core/session)
//   3. agree on terms: mode, transport, record size, algorithm
//   4. wires: ranks of one host pass shared memory to each other, others open data connections
//      that show a cookie from the session
//   5. everybody says "ready", and whom it has met: all must have met the same processes
// Every failure is an error that names the rank, and tells the others before it returns.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "comm/control.h"
#include "comm/options.h"
#include "core/collective/choose.h"
#include "core/session/session.h"
#include "transport/fabric.h"

namespace sealane {

struct Membership {
  std::unique_ptr<Control> control;
  std::unique_ptr<Fabric> fabric;
  std::vector<std::optional<SessionKeys>> keys;  // per rank; none for the own
  std::optional<Key> broadcast;                  // the own broadcast secret
  uint32_t payload_bytes = 0;  // of a record: what was asked for, or less in a large group
  uint32_t ring_records = 0;   // what every wire can hold
  Topology topology;
};

// options are complete (fill_from_environment) and sensible.
Result<Membership> join(const JoinOptions& options);

}  // namespace sealane
