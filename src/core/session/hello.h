// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What both ends say before TLS, in the clear: the version of the protocol, who they want to be,
// and a random number. Nothing of it is believed until TLS and the identity inside it have proved
// it; it serves to name a peer that fails, and to make every session's pre-shared key another one.
// Pure.
//
//   "sealane"  version (1)  bytes that follow (2)  nonce (32)  size (4)  rank (4)  proof (1)  group
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "core/session/identity.h"

namespace sealane {

constexpr uint8_t kProtocolVersion = 5;  // ranks of 4 do not name what a caller makes of a call

struct Hello {
  enum class Proof : uint8_t { key, certificate };

  std::array<uint8_t, 32> nonce{};
  Identity claimed;
  Proof proof = Proof::key;

  std::vector<uint8_t> encode() const;

  // How many bytes the greeting at the beginning of `stream` has; nothing if it has not all come
  // yet; a peer error that names the version if it is none of ours.
  static Result<std::optional<size_t>> length(Bytes stream);
  static Result<Hello> decode(Bytes whole);
};

}  // namespace sealane
