// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How ranks that do not know each other's addresses meet. Nothing that passes here is secret or
// trusted: a lie leads to a peer that fails the handshake. One thread at a time; everything ends at
// the deadline. A directory must be writable by this user alone (a usage error otherwise).
//
// Ranks that will never meet are told: who gives up leaves word for those it has no session with,
// and ranks that wait at one place for different groups or sizes find each other out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/options.h"

namespace sealane {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  // Every rank brings one piece of text and gets those of all, by rank.
  virtual Result<std::vector<std::string>> exchange(const Identity& self, const std::string& own,
                                                    Instant deadline) = 0;
  // What that rank has left here by now, where that can change: a job that crashed may have left an
  // address before. Use after exchange().
  virtual std::optional<std::string> again(uint32_t) { return std::nullopt; }
  // This rank gives up, and that one, which left this text, may not hear of it otherwise.
  virtual void tell(const Identity& /*whom*/, const std::string& /*text*/,
                    const std::string& /*reason*/) {}
  // What somebody who gave up has left for this rank. Use after exchange().
  virtual std::optional<std::string> word() { return std::nullopt; }
  // This rank gives up for a reason the others will see in what it left: that stays for them.
  virtual void leave_word() {}
  // All ranks have met: what was left for others to find can go.
  virtual void finish() {}
};

// The program no longer wants to join (JoinOptions::given_up).
inline Error given_up_error() { return usage_error("this process has given up joining"); }

// A usage error if options.rendezvous is none of file:DIRECTORY, tcp:HOST:PORT.
Result<std::unique_ptr<Rendezvous>> make_rendezvous(const JoinOptions& options);

}  // namespace sealane
