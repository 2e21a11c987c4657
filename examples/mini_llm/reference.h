// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The model once more, on the host: double precision, one thread, no cache, plain loops. What the
// device computed is compared with it.
#pragma once

#include <cstdint>
#include <vector>

#include "mini_llm/model.h"
#include "mini_llm/schedule.h"

namespace examples {

// Low-rank adapters of all layers, as the device stores them: per layer query down [rank][hidden],
// query up [hidden][rank], value down, value up.
struct AdapterValues {
  uint32_t rank;
  double scale;
  std::vector<double> values;
};

// Logits of every position of one sequence: [tokens][vocabulary].
std::vector<double> reference_logits(const Model& model, const std::vector<int32_t>& tokens,
                                     const AdapterValues* adapters = nullptr);

// Mean loss of predicting targets[i] at position i.
double reference_loss(const Model& model, const std::vector<int32_t>& tokens,
                      const std::vector<int32_t>& targets, const AdapterValues& adapters);

// Ends the program unless the first `count` choices of a generation are what greedy decoding
// gives, up to the rounding of float.
void check_generation(const Model& model, const Generation& generation, size_t count);

}  // namespace examples
