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
  bool streamed = false;         // past the caches, which `to` is too long for
  bool sealed_streamed = false;  // so is the ciphertext, where this is what is sealed

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

// A delivery a piece at a time, for a loop that has other work for the ports it leaves idle. Wiped
// when it dies; what is left then has not been carried out.
class PiecewiseDelivery {
 public:
  // `exact`: carry_out(at) delivers those very bytes. Else the pieces may begin with the first line
  // of `to` that can be streamed as a whole, and the bytes before it are delivered here.
  PiecewiseDelivery(const Delivery& delivery, bool exact);
  ~PiecewiseDelivery();
  PiecewiseDelivery(const PiecewiseDelivery&) = delete;
  PiecewiseDelivery& operator=(const PiecewiseDelivery&) = delete;

  static constexpr size_t kPieceBytesMax = 512;

  // In order, without gaps. Returns where they can be read, until the next call.
  const uint8_t* carry_out(size_t at, size_t bytes);
  void finish();  // whatever is left

  // For a loop that does the work itself: what there is to do from its first piece on, and that so
  // many bytes of it are done.
  const Delivery& left() const { return left_; }
  void skip(size_t bytes) { done_ = shift_ + bytes; }

 private:
  Delivery delivery_;
  Delivery left_;
  void (*kernel_)(const uint8_t* first, const uint8_t* second, uint8_t* out, size_t bytes);
  size_t shift_ = 0;
  size_t done_ = 0;
  alignas(64) uint8_t piece_[kPieceBytesMax];

  void begin_at_line(bool exact);
};

}  // namespace sealane
