// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What ddp_ring learns: a linear classifier, random samples with random labels. Everything follows
// from the seed, so each rank can make its own share and the host all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/random.h"

namespace examples {

struct Settings {
  uint64_t ranks = 0;  // 0: one per GPU
  uint64_t samples = 16;
  uint64_t inputs = 4096;
  uint64_t classes = 64;
  uint64_t steps = 4;
  uint64_t seed = 1;
  std::string algorithm = "hub";
  std::string json;

  size_t weights() const { return inputs * classes; }
};

inline constexpr float kRate = 0.02f;

// One rank's samples, the same every step.
struct Share {
  std::vector<float> features;  // [samples][inputs]
  std::vector<int32_t> labels;
};

inline Share make_share(const Settings& settings, uint64_t rank) {
  Random random(settings.seed * 1'000'003 + rank);
  Share share;
  for (uint64_t i = 0; i < settings.samples * settings.inputs; ++i) {
    share.features.push_back(random.real(1));
  }
  for (uint64_t i = 0; i < settings.samples; ++i) {
    share.labels.push_back(static_cast<int32_t>(random.below(settings.classes)));
  }
  return share;
}

inline std::vector<float> initial_weights(const Settings& settings) {
  Random random(~settings.seed);
  std::vector<float> weights(settings.weights());
  for (float& weight : weights) weight = random.real(0.01f);
  return weights;
}

// The same training on the host, in double precision and without ranks: the weights it ends with.
std::vector<double> train_on_host(const Settings& settings, uint64_t ranks);

}  // namespace examples
