// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A pass over memory that takes bytes where they are wanted: copied, or combined with others. As
// data, because an engine that is busy with AES can carry it out in the same loop: while a record
// is opened, the one verified before it reaches the caller; while a sum is sealed, it is made and
// stored.
#pragma once

#include "base/bytes.h"
#include "seal/record.h"

namespace sealane {

// to[i] = first[i], or first[i] op second[i] if there is a second. All have the same size; `to` may
// be the same memory as an operand. Private memory only: operands may be read twice. Without `to`
// it is the bytes of `first` where they are.
struct Delivery {
  Bytes first;
  Bytes second;
  ElementType type = ElementType::none;
  ReduceOperator op = ReduceOperator::none;  // not avg: who averages divides at the end
  MutableBytes to;
  bool streamed = false;  // past the caches, which `to` is too long for

  size_t bytes() const { return first.size(); }
  bool empty() const { return to.empty(); }
  bool combines() const { return !second.empty(); }
};

inline Delivery in_place(Bytes bytes) {
  Delivery delivery;
  delivery.first = bytes;
  return delivery;
}

void carry_out(const Delivery& delivery);

}  // namespace sealane
