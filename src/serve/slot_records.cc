// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/slot_records.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/bytes.h"
#include "os/pace.h"

namespace sealane::serve {
namespace {

constexpr uint64_t kPartBytes = 64_KiB;  // sealed without a break

}  // namespace

Speculator::Sealed SlotRecords::seal(const Order& order, SlotRecord& out) {
  const uint64_t bytes = order.host.bytes;
  Secret<GcmHash> hash;
  auto* record = static_cast<uint8_t*>(memory_.take(bytes));
  if (record == nullptr) return Speculator::Sealed::no_room;
  const uint8_t* from = order.source;
  if (from == nullptr || order.digested) {
    const uint64_t began = pace().begin();
    const auto* const source = reinterpret_cast<const void*>(order.host.address);
    if (!read_memory(from != nullptr ? from : source, record, bytes)) {
      memory_.give(record);
      return Speculator::Sealed::not_at_all;
    }
    pace().end(Pace::host_copy, bytes, began);
    if (order.digested) out.digest = digest_of(record, bytes);
    from = record;
  }
  seal_in_parts(order, from, record, *hash);
  out.hash = std::move(hash);
  out.host = order.host;
  out.bytes = record;
  return Speculator::Sealed::whole;
}

void SlotRecords::seal_in_parts(const Order& order, const uint8_t* from, uint8_t* record,
                                GcmHash& hash) const {
  const SplitGcm& gcm = *order.schedule;
  const uint64_t bytes = order.host.bytes;
  const uint64_t whole = bytes & ~uint64_t{kGcmBlockBytes - 1};
  Secret<std::array<GcmHash, MessageSize::kMost / kPartBytes>> hashes;
  const auto length = [&](size_t i) { return std::min(kPartBytes, whole - i * kPartBytes); };
  const size_t parts = (whole + kPartBytes - 1) / kPartBytes;
  pool_.each_behind(parts, [&](size_t i) {
    const uint64_t began = pace().begin();
    const uint64_t at = i * kPartBytes;
    (*hashes)[i] = gcm.seal_part(order.iv, at / kGcmBlockBytes, from + at, record + at, length(i));
    pace().end(Pace::aead_fast, length(i), began);
  });
  for (size_t i = 0; i < parts; ++i) {
    hash = gcm.join(hash, (*hashes)[i], length(i) / kGcmBlockBytes);
  }
  if (whole != bytes) {
    gcm.seal_part(order.iv, whole / kGcmBlockBytes, from + whole, record + whole, bytes - whole);
  }
}

// Pinned memory cannot go while somebody reads it: freeing it waits. Other memory may.
void SlotRecords::find_changed(const std::vector<SlotRecord>& records,
                               const RangeMap<HostBlock>& host_memory,
                               std::vector<Range>& out) const {
  std::vector<uint8_t> same(records.size());
  pool_.each(records.size(), [&](size_t i) {
    const Range& host = records[i].host;
    const auto block = host_memory.find(host.address);
    const bool stays = block && !block->what.registered && block->range.contains(host);
    same[i] = same_source(records[i], stays) ? 1 : 0;
  });
  for (size_t i = 0; i < records.size(); ++i) {
    if (same[i] == 0) out.push_back(records[i].host);
  }
}

bool SlotRecords::same_source(const SlotRecord& record, bool stays) const {
  const Range& host = record.host;
  const auto* const source = reinterpret_cast<const uint8_t*>(host.address);
  if (stays) return same_bytes(record, source, host.bytes);
  const uint64_t began = pace().begin();
  SourceDigest::Value now;
  std::array<uint8_t, 16 * SourceDigest::kBlockBytes> piece;
  bool there = true;
  for (uint64_t at = 0; there && at < host.bytes; at += piece.size()) {
    const uint64_t here = std::min<uint64_t>(piece.size(), host.bytes - at);
    there = read_memory(source + at, piece.data(), here);
    if (there) digest_.add(now, piece.data(), here);
  }
  wipe(piece);
  pace().end(Pace::host_copy, host.bytes, began);
  pace().end(Pace::digest, host.bytes, pace().begin());
  return there && now == *record.digest;
}

bool SlotRecords::same_bytes(const SlotRecord& record, const uint8_t* in, uint64_t bytes) const {
  if (!record.digest || record.host.bytes != bytes) return false;
  return digest_of(in, bytes) == *record.digest;
}

SourceDigest::Value SlotRecords::digest_of(const uint8_t* in, uint64_t bytes) const {
  const uint64_t began = pace().begin();
  const SourceDigest::Value value = digest_.of(in, bytes);
  pace().end(Pace::digest, bytes, began);
  return value;
}

void SlotRecords::find_digested(const Range& host, std::vector<SlotRecord>& out) const {
  std::copy_if(
      records_.begin(), records_.end(), std::back_inserter(out),
      [&](const SlotRecord& record) { return record.digest && record.host.overlaps(host); });
}

void SlotRecords::drop(SlotId slot, bool exposed) {
  const SlotRecord gone = std::exchange(records_[slot], {});
  if (gone.bytes != nullptr) memory_.give(gone.bytes, exposed ? Staging::keep : Staging::wiped);
}

}  // namespace sealane::serve
