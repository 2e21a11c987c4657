// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The wires between the ranks of a group. Each wire is an ordered, bounded queue of records:
//   out wires   0 … size-1        to that rank
//               size              to every other rank; the record is stored or staged once
//   in wires    0 … size-1        from that rank to this one
//               size … 2·size-1   from that rank to everybody
//
// Sending:    if writable(), fill slot() in place, then commit() it.
// Receiving:  if readable(), look at front(), then pop() it. front() may be memory others write.
// Waiting:    prepare_wait(), ask everything again, and if there is still nothing, wait().
//
// Nothing here blocks but wait(), and wait() has a bound. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"

namespace sealane {

class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual bool writable(uint32_t wire) = 0;
  virtual MutableBytes slot(uint32_t wire) = 0;  // writable() holds; record_capacity() bytes
  virtual void commit(uint32_t wire, size_t bytes) = 0;

  // Asked between the two: should a payload of so many bytes go past this core's caches?
  virtual bool streams(uint32_t, size_t) { return false; }

  virtual bool readable(uint32_t wire) = 0;
  virtual Bytes front(uint32_t wire) = 0;  // readable() holds; never longer than a slot
  virtual void pop(uint32_t wire) = 0;

  // How long it pays to go on asking before waiting: nothing where cores are scarce.
  virtual Duration patience() = 0;
  virtual void prepare_wait() = 0;
  virtual void wait(Duration at_most) = 0;

  // Sends off what commit() may have kept back; true when nothing is left to send.
  virtual bool flush() = 0;

  // True once the connection to that rank is gone. Records that arrived before are still readable.
  virtual bool lost(uint32_t peer) const = 0;

  // False if nothing that waits to be sent waits for that rank.
  virtual bool behind(uint32_t) const { return true; }

  virtual size_t memory_bytes() const = 0;  // held by this rank for its wires
};

// How many records a wire holds, and how long one may be.
struct WireShape {
  uint32_t size = 0;  // ranks
  uint32_t rank = 0;
  uint32_t pair_slots = 8;
  uint32_t broadcast_slots = 16;
  uint32_t receive_records = 4;  // what arrived on one connection and was not taken yet
  uint32_t record_bytes = 0;     // of a whole record

  // A slot starts with the record's size, placed so that the payload of a record whose header has
  // 56 bytes is aligned to a cache line.
  static constexpr uint32_t kRecordAt = 8;
  uint32_t slot_bytes() const { return (kRecordAt + record_bytes + 63) / 64 * 64; }
};

}  // namespace sealane
