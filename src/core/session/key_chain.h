// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The key schedule of a lane: one secret, from which both ends derive the key of every epoch.
//
//   secret 0 ─▶ key, IV mask and channel of epoch 0
//      └─▶ secret 1 ─▶ key, IV mask and channel of epoch 1
//             └─▶ …
//
// HKDF-Expand with SHA-256. A secret is wiped as soon as the next one exists, so an earlier epoch
// cannot be opened with what a later one leaves in memory.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "core/lane/lane.h"
#include "seal/engine.h"
#include "seal/key.h"

namespace sealane {

// HKDF-Expand (RFC 5869); aborts only if OpenSSL has no SHA-256.
void hkdf_expand(Bytes secret, std::string_view label, MutableBytes out);

class KeyChain {
 public:
  KeyChain(Key secret, const Engine& engine) : secret_(std::move(secret)), engine_(&engine) {}

  // The first call gives epoch 0, the next epoch 1, and so on.
  LaneSecret next();

 private:
  Key secret_;
  const Engine* engine_;
};

// A sending lane that changes its key by itself before a limit is reached. The first record of an
// epoch tells the receiver.
class RekeyingSendLane {
 public:
  RekeyingSendLane(uint32_t id, KeyChain chain, KeyLimits limits = {})
      : chain_(std::move(chain)), lane_(id, chain_.next(), limits) {}

  // As SendLane::seal_exposed.
  Status seal_exposed(const RecordHeader& header, Bytes plaintext, MutableBytes exposed);

  Epoch epoch() const { return lane_.ledger().epoch(); }

 private:
  KeyChain chain_;
  SendLane lane_;
};

// The other end. Follows to the next epoch when a record claims to be of it; the tag decides
// whether that was true, and if not the lane is dead.
class RekeyingReceiveLane {
 public:
  RekeyingReceiveLane(uint32_t id, KeyChain chain)
      : chain_(std::move(chain)), lane_(id, chain_.next(), Arrival::in_order) {}

  // As ReceiveLane::open.
  Result<RecordHeader> open(Bytes record, MutableBytes out);

  Epoch epoch() const { return lane_.epoch(); }

 private:
  KeyChain chain_;
  ReceiveLane lane_;
};

}  // namespace sealane
