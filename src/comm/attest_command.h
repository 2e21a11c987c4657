// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Attestation by a program of the user's (SEALANE_ATTEST_CMD), run by the shell:
//   CMD produce    evidence for SEALANE_ATTEST_BINDING (hex) to standard output
//   CMD check      evidence of rank SEALANE_ATTEST_RANK on standard input; exit 0 accepts it
//
// Evidence is produced once for all sessions of a process, about a key that signs in each
// (core/session/attested_key.h), and the same evidence of the same rank is checked once: an
// AttestCommand is a door to what its process knows. After two minutes both are asked for anew.
// Any thread.
#pragma once

#include <string>

#include "base/time.h"
#include "core/session/identity.h"

namespace sealane {

class AttestCommand final : public Attestor {
 public:
  // Whatever is asked of the command has ended by `until`, and within a minute. A null clock is the
  // real one.
  explicit AttestCommand(std::string command, const Clock* clock = nullptr,
                         Instant until = Instant::max());

  Result<std::vector<uint8_t>> produce(Bytes binding) override;
  Status check(uint32_t peer, Bytes binding, Bytes evidence) override;

 private:
  Result<std::vector<uint8_t>> run(const char* verb, Bytes binding, const std::string& rank,
                                   Bytes input) const;

  std::string command_;
  const Clock* clock_;
  Instant until_;
};

}  // namespace sealane
