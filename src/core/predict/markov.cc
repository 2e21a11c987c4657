// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/predict/markov.h"

#include <algorithm>
#include <bit>

#include "core/predict/hash.h"

namespace sealane {

Markov::Markov(BufferTable& buffers, size_t contexts_max)
    : buffers_(buffers), cells_(std::bit_ceil(contexts_max)) {}

void Markov::Context::push(const Symbol& symbol) {
  const uint64_t number = (uint64_t{symbol.id.generation} << 32 | symbol.id.slot) * 2 +
                          static_cast<uint64_t>(symbol.direction);
  for (size_t i = kOrders - 1; i > 0; --i) hashes[i] = mix_bits(hashes[i - 1] + i + number);
  hashes[0] = mix_bits(number);
}

void Markov::observe(const Transfer& transfer) {
  const BufferId id = buffers_.intern(transfer.host);
  if (!id.valid()) return;
  const Symbol symbol{id, transfer.direction};
  for (const uint64_t hash : context_.hashes) learn(hash, symbol);
  context_.push(symbol);
  // The next copy will look here, in a table larger than the nearer caches.
  for (const uint64_t hash : context_.hashes) __builtin_prefetch(&cell(hash), 1);
}

void Markov::learn(uint64_t hash, const Symbol& next) {
  Cell& known = cell(hash);
  if (known.tag == tag_of(hash) && known.next == next) {
    known.confidence = std::min<uint8_t>(known.confidence + 1, kConfidenceMax);
  } else if (known.confidence > 1) {
    --known.confidence;
  } else {
    known = {next, tag_of(hash), 1};
  }
}

const Markov::Cell* Markov::expected(const Context& context) const {
  for (size_t order = kOrders; order-- > 0;) {
    const uint64_t hash = context.hashes[order];
    const Cell& known = cell(hash);
    if (known.confidence > 0 && known.tag == tag_of(hash) && buffers_.alive(known.next.id)) {
      return &known;
    }
  }
  return nullptr;
}

size_t Markov::predict(std::span<Guess> next) const {
  Context context = context_;
  size_t count = 0;
  for (size_t steps = 4 * next.size(); steps > 0 && count < next.size(); --steps) {
    const Cell* known = expected(context);
    if (known == nullptr) break;
    if (known->next.direction == Direction::to_device) {
      next[count++] = {buffers_.range(known->next.id),
                       confidence_of(known->confidence, kConfidenceMax)};
    }
    context.push(known->next);
  }
  return count;
}

}  // namespace sealane
