// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The key schedule of a lane: one secret, from which both ends derive the key of every epoch.
//
//   secret 0 ─▶ key, IV mask and channel of epoch 0
//      └─ records of epoch 0 ─▶ secret 1 ─▶ key, IV mask and channel of epoch 1
//             └─ records of epoch 1 ─▶ secret 2 ─▶ …
//
// HKDF-Expand with SHA-256. How many records an epoch had goes into the next secret: two ends that
// disagree, because the last ones were cut off, have nothing in common from there on. A secret is
// wiped when the next one exists. That alone does not close earlier epochs to somebody who reads
// this process's memory: the TLS session a pair's first secret was exported from stays there.
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

  LaneSecret current() const;  // starts at epoch 0

  // Moves on; the epoch that ends had that many records.
  LaneSecret next(uint64_t records);

 private:
  Key secret_;
  const Engine* engine_;
};

// A sending lane that changes its key by itself before a limit is reached. The first record of an
// epoch tells the receiver.
class RekeyingSendLane {
 public:
  RekeyingSendLane(uint32_t id, KeyChain chain, KeyLimits limits = {})
      : chain_(std::move(chain)), lane_(id, chain_.current(), limits) {}

  // As SendLane::seal_exposed.
  Status seal_exposed(const RecordHeader& header, const Delivery& source, MutableBytes exposed);

  Epoch epoch() const { return lane_.ledger().epoch(); }

 private:
  KeyChain chain_;
  SendLane lane_;
};

// The other end. Follows to the next epoch when a record claims to be of it; the tag decides
// whether that was true and whether all records before it have come, and if not the lane is dead.
class RekeyingReceiveLane {
 public:
  RekeyingReceiveLane(uint32_t id, KeyChain chain)
      : chain_(std::move(chain)), lane_(id, chain_.current()) {}

  // As ReceiveLane::open.
  Result<RecordHeader> open(Bytes record, MutableBytes out, const Delivery& beside = {});

  Epoch epoch() const { return lane_.epoch(); }

 private:
  KeyChain chain_;
  ReceiveLane lane_;
};

}  // namespace sealane
