// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The record format of Sealane's own lanes, version 3: header, ciphertext, tag. The header is sent
// in the clear and authenticated as additional data; docs/wire-format.md has the picture.
//
// Parsing trusts nothing: the bytes come from the bus. RecordHeader::parse copies a header out of
// shared memory before it looks at it, and what it returns was checked in that copy.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "seal/aead.h"

namespace sealane {

// Element types and operators a collective can name; 0 where a record carries plain bytes.
enum class ElementType : uint8_t {
  none,
  float32,
  float64,
  float16,
  bfloat16,
  int32,
  int64,
  uint8,
};
enum class ReduceOperator : uint8_t { none, sum, avg, min, max };

constexpr ElementType kLastElementType = ElementType::uint8;
constexpr ReduceOperator kLastReduceOperator = ReduceOperator::max;

// Beyond those a record may name types and operators that only its sender's caller knows
// (comm/call.h has words for them): ranks compare them, and nothing is computed by them.
constexpr ElementType kLastNamedType{127};
constexpr ReduceOperator kLastNamedOperator{8};

struct RecordHeader {
  static constexpr uint8_t kVersion = 3;
  static constexpr size_t kBytes = 56;

  using Encoded = std::array<uint8_t, kBytes>;

  uint32_t length = 0;    // of the ciphertext
  uint32_t lane = 0;      // which direction of which channel
  uint32_t epoch = 0;     // which key
  uint64_t position = 0;  // which message under that key

  // What a collective names; all zero on other lanes.
  uint32_t communicator = 0;
  uint64_t operation = 0;  // running number of the collective call
  uint8_t phase = 0;       // of the schedule: reduce-scatter, all-gather, …
  ElementType type = ElementType::none;
  ReduceOperator op = ReduceOperator::none;
  uint32_t chunk = 0;
  uint32_t origin = 0;  // the rank that sealed it

  // The call the record belongs to, as its sender made it: two ranks that make different ones see
  // that here, before anybody uses a byte.
  uint8_t collective = 0;   // 0 none
  uint16_t root = 0;        // where there is one
  uint64_t call_bytes = 0;  // of the whole call

  Encoded encode() const;

  // A crypto error if the bytes are no valid header of this version: the lane has been tampered
  // with.
  static Result<RecordHeader> parse(Bytes bytes);

  bool operator==(const RecordHeader&) const = default;
};

// The largest ciphertext of one record. Bounds what a forged header can make a receiver reserve.
constexpr uint32_t kRecordPayloadBytesMax = uint32_t{16} << 20;

constexpr size_t record_bytes(size_t payload_bytes) {
  return RecordHeader::kBytes + payload_bytes + kTagBytes;
}

}  // namespace sealane
