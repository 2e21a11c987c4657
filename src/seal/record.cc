// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "seal/record.h"

#include "base/check.h"
#include "base/text.h"

namespace sealane {
namespace {

// Offsets of version 3, as of 2.
constexpr size_t kMagicAt = 0;
constexpr size_t kVersionAt = 1;
constexpr size_t kRootAt = 2;
constexpr size_t kLengthAt = 4;
constexpr size_t kLaneAt = 8;
constexpr size_t kEpochAt = 12;
constexpr size_t kPositionAt = 16;
constexpr size_t kOperationAt = 24;
constexpr size_t kCommunicatorAt = 32;
constexpr size_t kChunkAt = 36;
constexpr size_t kPhaseAt = 40;
constexpr size_t kTypeAt = 41;
constexpr size_t kOperatorAt = 42;
constexpr size_t kCollectiveAt = 43;
constexpr size_t kOriginAt = 44;
constexpr size_t kCallBytesAt = 48;
static_assert(kCallBytesAt + 8 == RecordHeader::kBytes);

constexpr uint8_t kMagic = 0x5e;

}  // namespace

RecordHeader::Encoded RecordHeader::encode() const {
  SEALANE_CHECK(length <= kRecordPayloadBytesMax, "record longer than the format allows");
  Encoded out{};
  out[kMagicAt] = kMagic;
  out[kVersionAt] = kVersion;
  store_le(&out[kLengthAt], length);
  store_le(&out[kLaneAt], lane);
  store_le(&out[kEpochAt], epoch);
  store_le(&out[kPositionAt], position);
  store_le(&out[kOperationAt], operation);
  store_le(&out[kCommunicatorAt], communicator);
  store_le(&out[kChunkAt], chunk);
  out[kPhaseAt] = phase;
  out[kTypeAt] = static_cast<uint8_t>(type);
  out[kOperatorAt] = static_cast<uint8_t>(op);
  out[kCollectiveAt] = collective;
  store_le(&out[kRootAt], root);
  store_le(&out[kOriginAt], origin);
  store_le(&out[kCallBytesAt], call_bytes);
  return out;
}

Result<RecordHeader> RecordHeader::parse(Bytes bytes) {
  if (bytes.size() < kBytes) {
    return crypto_error(
        concat("record header cut short: ", bytes.size(), " of ", kBytes, " bytes"));
  }
  Encoded in;  // private: what is checked below is what is used
  copy_from_shared(bytes.first(kBytes), in);

  if (in[kMagicAt] != kMagic) return crypto_error("not a record: wrong first byte");
  if (in[kVersionAt] != kVersion) {
    return crypto_error(concat("record of version ", static_cast<int>(in[kVersionAt]),
                               " of the format, this is version ", static_cast<int>(kVersion)));
  }

  RecordHeader header;
  header.length = load_le<uint32_t>(&in[kLengthAt]);
  if (header.length > kRecordPayloadBytesMax) {
    return crypto_error(concat("record of ", header.length, " bytes is longer than the format's ",
                               kRecordPayloadBytesMax));
  }
  if (in[kTypeAt] > static_cast<uint8_t>(kLastNamedType) ||
      in[kOperatorAt] > static_cast<uint8_t>(kLastNamedOperator)) {
    return crypto_error("record names an unknown element type or operator");
  }
  header.lane = load_le<uint32_t>(&in[kLaneAt]);
  header.epoch = load_le<uint32_t>(&in[kEpochAt]);
  header.position = load_le<uint64_t>(&in[kPositionAt]);
  header.operation = load_le<uint64_t>(&in[kOperationAt]);
  header.communicator = load_le<uint32_t>(&in[kCommunicatorAt]);
  header.chunk = load_le<uint32_t>(&in[kChunkAt]);
  header.phase = in[kPhaseAt];
  header.type = static_cast<ElementType>(in[kTypeAt]);
  header.op = static_cast<ReduceOperator>(in[kOperatorAt]);
  header.origin = load_le<uint32_t>(&in[kOriginAt]);
  header.collective = in[kCollectiveAt];
  header.root = load_le<uint16_t>(&in[kRootAt]);
  header.call_bytes = load_le<uint64_t>(&in[kCallBytesAt]);
  return header;
}

}  // namespace sealane
