// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of layer_swap, kv_swap and decode_loop. They compute with integers: one wrong byte in
// anything that was copied makes a wrong result, and the host can check it exactly.
#pragma once

#include "kernels/device_code.h"

namespace examples {

// A product of matrix and vectors with addition modulo 2^32 and exclusive or for multiplication:
// out[b][r] = mix of r and the sum over c of weights[r][c] ^ in[b][c]. Runs at memory speed also on
// a CPU, and any changed bit of any weight changes the sum.
struct MatVec {
  const uint32_t* weights;
  const uint32_t* in;
  uint32_t* out;
  uint32_t rows;
  uint32_t columns;
  uint32_t batch;

  SEALANE_DEVICE size_t items() const { return size_t{rows} * batch; }

  SEALANE_DEVICE void item(size_t i) const {
    const size_t row = i / batch;
    const size_t lane = i % batch;
    const uint32_t* const weight = weights + row * columns;
    const uint32_t* const vector = in + lane * columns;
    uint32_t sum = 0;
    for (uint32_t c = 0; c < columns; ++c) sum += weight[c] ^ vector[c];
    out[lane * rows + row] = mix(sum, static_cast<uint32_t>(row));
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(weights, size_t{rows} * columns);
    visit(in, size_t{batch} * columns);
    visit(out, size_t{batch} * rows);
  }

  double operations() const { return 2.0 * rows * columns * batch; }
};

// What KvAppend writes for one word of a token.
SEALANE_DEVICE inline uint32_t kv_word(uint32_t owner, uint32_t token, uint32_t word) {
  return mix(mix(owner, token), word);
}

// Writes `tokens` new tokens, from `first_token` on, into their slots of one KV block.
struct KvAppend {
  uint32_t* slots;
  uint32_t token_words;
  uint32_t tokens;
  uint32_t owner;
  uint32_t first_token;

  SEALANE_DEVICE size_t items() const { return size_t{tokens} * token_words; }
  SEALANE_DEVICE void item(size_t i) const {
    slots[i] = kv_word(owner, first_token + static_cast<uint32_t>(i / token_words),
                       static_cast<uint32_t>(i % token_words));
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(slots, items());
  }

  double operations() const { return 20.0 * tokens * token_words; }
};

// Reads the first `tokens` tokens of a sequence through its block table, as attention would:
// digest[w] depends on word w of every token and on the tokens' order.
struct KvDigest {
  const uint32_t* pool;
  const int32_t* table;  // block numbers of the sequence, in order
  uint32_t* digest;
  size_t pool_words;
  uint32_t token_words;  // a multiple of kWords
  uint32_t block_tokens;
  uint32_t tokens;

  // Words one item reads of each token: a cache line.
  static constexpr uint32_t kWords = 16;

  SEALANE_DEVICE uint32_t blocks() const { return (tokens + block_tokens - 1) / block_tokens; }
  SEALANE_DEVICE size_t items() const { return token_words / kWords; }

  SEALANE_DEVICE void item(size_t i) const {
    uint32_t sums[kWords] = {};
    for (uint32_t token = 0; token < tokens; ++token) {
      const size_t slot = size_t(table[token / block_tokens]) * block_tokens + token % block_tokens;
      const uint32_t* const words = pool + slot * token_words + i * kWords;
      for (uint32_t w = 0; w < kWords; ++w) sums[w] = sums[w] * 31 + words[w];
    }
    for (uint32_t w = 0; w < kWords; ++w) digest[i * kWords + w] = sums[w];
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(pool, pool_words, size_t{tokens} * token_words);
    visit(table, blocks());
    visit(digest, token_words);
  }

  double operations() const { return 2.0 * tokens * token_words; }
};

// One step of a pretended model: a sequence's state takes in its token, position and newest KV
// block, and makes logits.
struct DecodeStep {
  const int32_t* tokens;
  const int32_t* positions;
  const int32_t* block_table;  // [batch][table_columns]
  uint32_t* states;
  uint32_t* logits;  // [batch][vocabulary]
  uint32_t batch;
  uint32_t vocabulary;
  uint32_t table_columns;
  uint32_t block_tokens;

  SEALANE_DEVICE size_t items() const { return batch; }

  SEALANE_DEVICE void item(size_t i) const {
    const auto position = static_cast<uint32_t>(positions[i]);
    const uint32_t newest =
        static_cast<uint32_t>(block_table[i * table_columns + position / block_tokens]);
    const uint32_t input = mix(static_cast<uint32_t>(tokens[i]), mix(position, newest));
    const uint32_t state = mix(states[i], input);
    states[i] = state;
    for (uint32_t v = 0; v < vocabulary; ++v) logits[i * vocabulary + v] = mix(state, v);
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(tokens, batch);
    visit(positions, batch);
    visit(block_table, size_t{batch} * table_columns);
    visit(states, batch);
    visit(logits, size_t{batch} * vocabulary);
  }

  double operations() const { return 10.0 * batch * vocabulary; }
};

// chosen[i] = the first index of row i's largest logit.
struct PickToken {
  const uint32_t* logits;
  int32_t* chosen;
  uint32_t batch;
  uint32_t vocabulary;

  SEALANE_DEVICE size_t items() const { return batch; }

  SEALANE_DEVICE void item(size_t i) const {
    const uint32_t* const row = logits + i * vocabulary;
    uint32_t best = 0;
    for (uint32_t v = 1; v < vocabulary; ++v) {
      if (row[v] > row[best]) best = v;
    }
    chosen[i] = static_cast<int32_t>(best);
  }

  template <typename Visit>
  void memory(Visit&& visit) {
    visit(logits, size_t{batch} * vocabulary);
    visit(chosen, batch);
  }

  double operations() const { return 1.0 * batch * vocabulary; }
};

}  // namespace examples
