// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "seal/delivery.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "seal/reduce.h"
#include "seal/stream_copy.h"

namespace sealane {
namespace {

constexpr size_t kPieceBytes = 4_KiB;  // a multiple of every element's; stays in the nearest cache

// What is to be streamed is made beside, so that the stores are whole cache lines.
void stream_sum(const Delivery& delivery) {
  alignas(64) uint8_t sum[kPieceBytes];
  for (size_t at = 0; at < delivery.to.size(); at += kPieceBytes) {
    const size_t count = std::min(kPieceBytes, delivery.to.size() - at);
    const MutableBytes piece(sum, count);
    reduce(delivery.type, delivery.op, delivery.first.subspan(at, count),
           delivery.second.subspan(at, count), piece);
    stream_copy(delivery.to.subspan(at, count), piece);
  }
  wipe(sum);
}

constexpr size_t kLineBytes = 64;
constexpr size_t kAhead = 2048;  // the CPU's own prefetching ends with each page

void ask_for(const uint8_t* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(from + kAhead + at);
}

size_t past_line(const Delivery& delivery) {
  return reinterpret_cast<uintptr_t>(delivery.to.data()) % kLineBytes;
}

}  // namespace

PiecewiseDelivery::PiecewiseDelivery(const Delivery& delivery, bool exact)
    : delivery_(delivery),
      kernel_(delivery.combines() ? reduce_kernel(delivery.type, delivery.op) : nullptr) {
  SEALANE_CHECK(delivery.to.size() == delivery.first.size(), "delivery: sizes differ");
  if (delivery_.streamed && past_line(delivery_) != 0) begin_at_line(exact);
  left_ = delivery_;
  left_.first = delivery_.first.subspan(shift_);
  if (kernel_ != nullptr) left_.second = delivery_.second.subspan(shift_);
  left_.to = delivery_.to.subspan(shift_);
}

void PiecewiseDelivery::begin_at_line(bool exact) {
  const size_t head = std::min(kLineBytes - past_line(delivery_), delivery_.to.size());
  if (exact || (kernel_ != nullptr && head % element_bytes(delivery_.type) != 0)) {
    delivery_.streamed = false;
    return;
  }
  carry_out(0, head);
  shift_ = head;
}

PiecewiseDelivery::~PiecewiseDelivery() {
  if (kernel_ != nullptr && delivery_.streamed) wipe(piece_);
}

const uint8_t* PiecewiseDelivery::carry_out(size_t at, size_t bytes) {
  at += shift_;
  if (at >= delivery_.to.size()) return nullptr;
  bytes = std::min(bytes, delivery_.to.size() - at);
  done_ = at + bytes;
  const uint8_t* const first = delivery_.first.data() + at;
  uint8_t* const to = delivery_.to.data() + at;
  ask_for(first, bytes);
  if (kernel_ == nullptr) {
    if (delivery_.streamed) {
      stream_copy_unordered({to, bytes}, {first, bytes});
    } else if (first != to) {
      std::memcpy(to, first, bytes);
    }
    return first;
  }
  const uint8_t* const second = delivery_.second.data() + at;
  ask_for(second, bytes);
  if (!delivery_.streamed) {
    kernel_(first, second, to, bytes);
    return to;
  }
  kernel_(first, second, piece_, bytes);
  stream_copy_unordered({to, bytes}, {piece_, bytes});
  return piece_;
}

void PiecewiseDelivery::finish() {
  while (done_ < delivery_.to.size()) carry_out(done_ - shift_, kPieceBytesMax);
  if (delivery_.streamed) stream_fence();
}

void carry_out(const Delivery& delivery) {
  SEALANE_CHECK(!delivery.empty() || !delivery.combines(), "delivery: a sum, and no place for it");
  if (delivery.empty()) return;
  SEALANE_CHECK(delivery.first.size() == delivery.to.size(), "delivery: sizes differ");
  if (delivery.combines()) {
    if (delivery.streamed) return stream_sum(delivery);
    return reduce(delivery.type, delivery.op, delivery.first, delivery.second, delivery.to);
  }
  if (delivery.first.data() == delivery.to.data()) return;
  if (delivery.streamed) return stream_copy(delivery.to, delivery.first);
  std::memcpy(delivery.to.data(), delivery.first.data(), delivery.to.size());
}

}  // namespace sealane
