// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The two ends of one of Sealane's own lanes: records (seal/record.h) under positions (ledger.h).
//
// Sending, in order:   1. reserve()  serial    a position, within the key's limits
//                      2. seal()     parallel  consumes the position
//                      3. publish()  serial    in position order, before a byte is exposed
//                      or seal_exposed(), which is all three, straight into shared memory
// Receiving:           open()        serial    header, order, tag; the first error is final. A gap,
//                                              a repetition or a swap is an attack
//
// Pure. seal() may run on several threads at once, also beside reserve() and publish(), but not
// beside rotate(); everything else runs on one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "core/lane/iv_law.h"
#include "core/lane/ledger.h"
#include "seal/aead.h"
#include "seal/delivery.h"
#include "seal/record.h"

namespace sealane {

// What both ends of a lane agree on for one epoch. Comes from the key schedule.
struct LaneSecret {
  std::unique_ptr<Aead> aead;
  IvLaw iv_law;
};

// Proof that a record was sealed in private memory and has not been exposed.
class SealedRecord {
 public:
  SealedRecord(SealedRecord&&) = default;
  SealedRecord& operator=(SealedRecord&&) = default;

  uint64_t position() const { return position_.number(); }
  MutableBytes bytes() const { return bytes_; }

 private:
  friend class SendLane;
  SealedRecord(Position position, MutableBytes bytes)
      : position_(std::move(position)), bytes_(bytes) {}

  Position position_;
  MutableBytes bytes_;
};

class SendLane {
 public:
  SendLane(uint32_t id, LaneSecret secret, KeyLimits limits = {});

  // The right to seal `payload_bytes`; a crypto error if the key may not: rotate() first.
  Result<Position> reserve(size_t payload_bytes);

  // Fills in the header's lane, epoch, position and length, and writes header, ciphertext and tag
  // to `out`, which is private memory of record_bytes(plaintext.size()). Aborts if the position was
  // moved from: it has been used.
  SealedRecord seal(Position position, RecordHeader header, Bytes plaintext,
                    MutableBytes out) const;

  // From here on the record may be exposed. A crypto error if it is not this lane's turn.
  Result<Bytes> publish(SealedRecord record);

  // The three steps at once, for records nobody could want back: `exposed` may be memory the other
  // side reads and writes already. The position is published before the first byte is written.
  // The payload is what `source` delivers.
  Status seal_exposed(const RecordHeader& header, const Delivery& source, MutableBytes exposed);

  // True if the key cannot carry one more record of that size: rotate() first.
  bool exhausted(size_t payload_bytes) const;

  void rotate(LaneSecret secret);

  const Ledger& ledger() const { return ledger_; }

 private:
  void write(uint64_t position, RecordHeader header, const Delivery& source,
             MutableBytes out) const;

  uint32_t id_;
  LaneSecret secret_;
  Ledger ledger_;
};

class ReceiveLane {
 public:
  ReceiveLane(uint32_t id, LaneSecret secret);

  // `record` may be in shared memory; it is read once. On success the payload is in the first
  // header.length bytes of `out`. Any error is final for the lane, and `out` is wiped. `beside` is
  // carried out by the way, at the latest when this returns without an error.
  Result<RecordHeader> open(Bytes record, MutableBytes out, const Delivery& beside = {});

  void rotate(LaneSecret secret);
  Epoch epoch() const { return epoch_; }
  uint64_t received() const { return next_; }  // records of this epoch

 private:
  Result<RecordHeader> try_open(Bytes record, MutableBytes out, const Delivery& beside);
  Status expected(const RecordHeader& header) const;

  uint32_t id_;
  LaneSecret secret_;
  Epoch epoch_;
  uint64_t next_ = 0;
  std::optional<Error> failure_;
};

}  // namespace sealane
