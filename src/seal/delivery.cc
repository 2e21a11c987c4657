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

}  // namespace

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
