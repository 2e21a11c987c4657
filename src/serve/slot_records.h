// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The records of slots: private, locked memory, and how one gets there. It is sealed in parts that
// give way to whatever is asked for now, and that all workers share: what is needed first is ready
// first. A record's hash and those of its parts wait where keys are: with the ciphertext, they tell
// one.
//
// Threads: seal() from any; the table of records is under its owner's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/pipeline/speculator.h"
#include "os/worker_pool.h"
#include "seal/split_gcm.h"
#include "serve/memory.h"
#include "serve/source_digest.h"

namespace sealane::serve {

struct SlotRecord {
  uint8_t* bytes = nullptr;
  Range host;
  std::optional<Secret<GcmHash>> hash{};        // of all of it, for as long as anybody has it
  std::optional<SourceDigest::Value> digest{};  // of what was sealed, where nothing else can tell
};

class SlotRecords {
 public:
  SlotRecords(WorkerPool& pool, uint64_t bytes_max, SlotBudget* budget)
      : pool_(pool),
        memory_(bytes_max, Staging::Locking::required, budget),
        records_(SlotPool::kSlotsMax) {}

  struct Order {
    Range host;
    const uint8_t* source = nullptr;  // nullptr: the program's own memory, which may vanish
    std::shared_ptr<const SplitGcm> schedule{};
    Iv iv{};
    bool digested = false;
  };
  Speculator::Sealed seal(const Order& order, SlotRecord& out);
  // Of which of these does the program's memory not hold any more what was sealed?
  void find_changed(const std::vector<SlotRecord>& records, const RangeMap<HostBlock>& host_memory,
                    std::vector<Range>& out) const;
  // Are these the bytes that were?
  bool same_bytes(const SlotRecord& record, const uint8_t* in, uint64_t bytes) const;

  SlotRecord& operator[](SlotId slot) { return records_[slot]; }
  // Those with a digest of this memory.
  void find_digested(const Range& host, std::vector<SlotRecord>& out) const;
  // What was never exposed is wiped. What was is ciphertext that anybody may have.
  void drop(SlotId slot, bool exposed);
  void close() { memory_.close(); }

 private:
  bool same_source(const SlotRecord& record, bool stays) const;
  SourceDigest::Value digest_of(const uint8_t* in, uint64_t bytes) const;
  void seal_in_parts(const Order& order, const uint8_t* from, uint8_t* record, GcmHash& hash) const;

  WorkerPool& pool_;
  Staging memory_;
  const SourceDigest digest_;
  std::vector<SlotRecord> records_;
};

}  // namespace sealane::serve
