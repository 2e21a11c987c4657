// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "mini_llm/reference.h"

#include <algorithm>
#include <cmath>

#include "support/fail.h"

namespace examples {

namespace {

using Row = std::vector<double>;
using RowList = std::vector<Row>;

Row normalise(const Row& x, const float* gain) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
  Row out(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * scale * gain[i];
  return out;
}

template <typename Weight>
Row multiply(const Weight* weights, const Row& x, size_t outputs) {
  Row out(outputs);
  for (size_t o = 0; o < outputs; ++o) {
    for (size_t i = 0; i < x.size(); ++i) out[o] += weights[o * x.size() + i] * x[i];
  }
  return out;
}

void add(Row& to, const Row& from, double scale = 1) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += scale * from[i];
}

// Attention of the newest row of keys and values over all of them.
Row attend(const Shape& shape, const Row& query, const RowList& keys, const RowList& values) {
  Row out(shape.hidden);
  const size_t last = keys.size() - 1;
  for (uint32_t head = 0; head < shape.heads(); ++head) {
    const size_t first = size_t{head} * kHeadWidth;
    const double slope = std::exp2(-8.0 * (head + 1) / shape.heads());
    Row weights(keys.size());
    for (size_t position = 0; position <= last; ++position) {
      double product = 0;
      for (size_t d = 0; d < kHeadWidth; ++d)
        product += query[first + d] * keys[position][first + d];
      weights[position] =
          product / std::sqrt(double{kHeadWidth}) - slope * static_cast<double>(last - position);
    }
    const double maximum = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - maximum);
    for (size_t position = 0; position <= last; ++position) {
      for (size_t d = 0; d < kHeadWidth; ++d) {
        out[first + d] += weights[position] / sum * values[position][first + d];
      }
    }
  }
  return out;
}

// Adds scale * up (down x), where down and up lie one after the other.
void adapt(Row& to, const Row& x, const AdapterValues& adapters, const double* down) {
  const double* const up = down + adapters.rank * x.size();
  add(to, multiply(up, multiply(down, x, adapters.rank), x.size()), adapters.scale);
}

void run_layer(const Model& model, size_t index, const AdapterValues* adapters, RowList& rows) {
  const Shape& shape = model.shape();
  const LayerView weights = model.layer(index);
  const float* const gains = model.gains().data() + 2 * index * shape.hidden;
  RowList keys;
  RowList values;
  for (Row& x : rows) {
    const Row normed = normalise(x, gains);
    Row query = multiply(weights[Matrix::query], normed, shape.hidden);
    keys.push_back(multiply(weights[Matrix::key], normed, shape.hidden));
    values.push_back(multiply(weights[Matrix::value], normed, shape.hidden));
    if (adapters != nullptr) {
      const size_t pair = 2 * size_t{adapters->rank} * shape.hidden;
      const double* const first = adapters->values.data() + 2 * index * pair;
      adapt(query, normed, *adapters, first);
      adapt(values.back(), normed, *adapters, first + pair);
    }
    add(x, multiply(weights[Matrix::output], attend(shape, query, keys, values), shape.hidden));
    const Row again = normalise(x, gains + shape.hidden);
    Row inner = multiply(weights[Matrix::gate], again, shape.inner());
    const Row up = multiply(weights[Matrix::up], again, shape.inner());
    for (size_t i = 0; i < inner.size(); ++i) inner[i] *= up[i] / (1 + std::exp(-inner[i]));
    add(x, multiply(weights[Matrix::down], inner, shape.hidden));
  }
}

}  // namespace

std::vector<double> reference_logits(const Model& model, const std::vector<int32_t>& tokens,
                                     const AdapterValues* adapters) {
  const Shape& shape = model.shape();
  const float* const embedding = model.embedding().data();
  RowList rows;
  for (const int32_t token : tokens) {
    const float* const first = embedding + static_cast<size_t>(token) * shape.hidden;
    rows.emplace_back(first, first + shape.hidden);
  }
  for (size_t layer = 0; layer < shape.layers; ++layer) run_layer(model, layer, adapters, rows);
  const float* const gain = model.gains().data() + 2 * size_t{shape.layers} * shape.hidden;
  std::vector<double> logits;
  for (const Row& row : rows) {
    const Row values = multiply(embedding, normalise(row, gain), shape.vocabulary);
    logits.insert(logits.end(), values.begin(), values.end());
  }
  return logits;
}

double reference_loss(const Model& model, const std::vector<int32_t>& tokens,
                      const std::vector<int32_t>& targets, const AdapterValues& adapters) {
  const std::vector<double> logits = reference_logits(model, tokens, &adapters);
  const size_t vocabulary = model.shape().vocabulary;
  double loss = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const double* const row = logits.data() + i * vocabulary;
    const double maximum = *std::max_element(row, row + vocabulary);
    double sum = 0;
    for (size_t v = 0; v < vocabulary; ++v) sum += std::exp(row[v] - maximum);
    loss += std::log(sum) + maximum - row[targets[i]];
  }
  return loss / static_cast<double>(tokens.size());
}

void check_generation(const Model& model, const Generation& generation, size_t count) {
  count = std::min(count, generation.choices.size());
  const size_t prompt = generation.prompt.size();
  std::vector<int32_t> tokens;
  for (size_t i = 0; i + 1 < prompt + count; ++i) tokens.push_back(generation.token_at(i));
  const std::vector<double> logits = reference_logits(model, tokens);
  const size_t vocabulary = model.shape().vocabulary;
  for (size_t i = 0; i < count; ++i) {
    const double* const row = logits.data() + (prompt - 1 + i) * vocabulary;
    const double best = *std::max_element(row, row + vocabulary);
    const Choice& choice = generation.choices[i];
    const double tolerance = 1e-3 * (1 + std::fabs(best));
    if (row[choice.token] < best - tolerance || std::fabs(choice.logit - best) > tolerance) {
      fail("token %zu is wrong: the device chose %d with logit %g, the largest logit is %g", i,
           choice.token, static_cast<double>(choice.logit), best);
    }
  }
}

}  // namespace examples
