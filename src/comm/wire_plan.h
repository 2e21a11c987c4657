// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How many records the wires hold and how long a record is, so that a rank's memory has one bound
// for any message and any group: first the queues get shorter, then the records. Depends only on
// what all ranks know, so that all come to the same answer. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/fabric.h"

namespace sealane {

// What a group looks like to its wires.
struct GroupShape {
  uint32_t size = 0;
  uint32_t most_on_a_host = 0;  // ranks of the fullest host that share memory; 1: none do
  uint32_t streams = 1;         // TCP connections of either kind per pair

  bool one_host() const { return most_on_a_host == size; }
};

struct WirePlan {
  uint32_t payload_bytes = 0;  // of a record
  WireShape shm;               // its size and rank are for the host to fill in
  WireShape tcp;

  // What every wire of the group can hold: bounds what a ring has under way.
  uint32_t ring_records() const;
};

// Of all wires of one rank. With the windows on GPU memory and scratch it stays below 32 MiB.
constexpr size_t kWireBytesMax = size_t{23} << 20;

// `payload_bytes_wanted` is a multiple of 64.
WirePlan plan_wires(const GroupShape& group, uint32_t payload_bytes_wanted);

size_t wire_bytes(const GroupShape& group, const WirePlan& plan);

}  // namespace sealane
