// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A call as all ranks of a group must make it. Every record names its sender's (seal/record.h), and
// a rank that waits tells those it waits for, so that two that differ are found out whether their
// records meet or not. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "core/collective/schedule.h"
#include "seal/record.h"

namespace sealane {

// What a call is to who makes it, where the library only carries it: a product that travels as an
// all_gather and is made by the caller, say. Takes the place of the library's own words in what
// ranks compare; what is not given stays.
struct Label {
  std::optional<Collective> collective;
  ElementType type = ElementType::none;      // up to kLastNamedType
  ReduceOperator op = ReduceOperator::none;  // up to kLastNamedOperator
  std::optional<uint32_t> root;
};

struct Call {
  uint64_t number = 0;  // of the collective call in its group, or of the message in its pair
  Collective collective = Collective::barrier;  // both ends of a message call it `send`
  ElementType type = ElementType::none;
  ReduceOperator op = ReduceOperator::none;
  uint32_t root = 0;  // broadcast, reduce, gather, scatter; the receiver of a message
  uint64_t bytes = 0;

  Call labelled(const Label& label) const;

  void write(RecordHeader& header) const;
  // Nothing if the header names none.
  static std::optional<Call> of(const RecordHeader& header);

  std::vector<uint8_t> encode() const;
  static std::optional<Call> decode(Bytes bytes);

  std::string describe() const;  // "broadcast 3 of 4096 bytes float32 from rank 1"

  bool operator==(const Call&) const = default;
};

// "called ... where this rank called ..."
std::string differ(const Call& theirs, const Call& own);

}  // namespace sealane
