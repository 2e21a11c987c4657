// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Evidence is dear: a quote takes a second, its check may ask somebody else's server, and a rank
// has a session with every other. So a process has a signing key (Ed25519), evidence is about that
// key, once, and what makes it this session's is a signature. Nobody can take evidence from another
// process without the key, which does not leave secret memory, nor a signature from another
// session.
//
// Pure. An AttestedKey may be used by several threads.
#pragma once

#include <array>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "base/result.h"
#include "core/session/sha256.h"
#include "seal/key.h"

namespace sealane {

class AttestedKey {
 public:
  static AttestedKey random(Random& random);

  // What evidence must contain to speak for this key.
  const Sha256::Digest& binding() const { return binding_; }

  // `evidence` with the proof that who sends it in the session of `session_binding` has the key.
  std::vector<uint8_t> present(Bytes session_binding, Bytes evidence) const;

  // False in a child of the process that made it.
  bool alive() const { return seed_.alive(); }

 private:
  AttestedKey(Key seed, const std::array<uint8_t, 32>& name);

  Key seed_;
  std::array<uint8_t, 32> name_;  // the public half
  Sha256::Digest binding_;
};

// What a peer presented, if its signature is of this session: the evidence, and what it must
// contain.
struct Presented {
  Sha256::Digest binding;
  Bytes evidence;  // inside of what was given
};
Result<Presented> read_presented(Bytes session_binding, Bytes sent);

// How much longer than the evidence what is presented is.
constexpr size_t kPresentedExtraBytes = 8 + 32 + 64;

}  // namespace sealane
