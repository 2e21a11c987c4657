// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>

#include "ddp_ring/task.h"

namespace examples {

namespace {

// Adds the gradient of one sample's loss.
void add_gradient(const Settings& settings, const std::vector<double>& weights,
                  const float* features, int32_t label, std::vector<double>& gradient) {
  std::vector<double> logits(settings.classes);
  for (uint64_t c = 0; c < settings.classes; ++c) {
    const double* const row = &weights[c * settings.inputs];
    for (uint64_t i = 0; i < settings.inputs; ++i) logits[c] += row[i] * features[i];
  }
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - highest);
  for (uint64_t c = 0; c < settings.classes; ++c) {
    const double wanted = static_cast<uint64_t>(label) == c ? 1 : 0;
    const double slope = std::exp(logits[c] - highest) / sum - wanted;
    double* const row = &gradient[c * settings.inputs];
    for (uint64_t i = 0; i < settings.inputs; ++i) row[i] += slope * features[i];
  }
}

}  // namespace

std::vector<double> train_on_host(const Settings& settings, uint64_t ranks) {
  std::vector<Share> shares;
  for (uint64_t rank = 0; rank < ranks; ++rank) shares.push_back(make_share(settings, rank));
  const std::vector<float> start = initial_weights(settings);
  std::vector<double> weights(start.begin(), start.end());
  for (uint64_t step = 0; step < settings.steps; ++step) {
    std::vector<double> gradient(weights.size());
    for (const Share& share : shares) {
      for (uint64_t s = 0; s < settings.samples; ++s) {
        add_gradient(settings, weights, &share.features[s * settings.inputs], share.labels[s],
                     gradient);
      }
    }
    const double scale = kRate / static_cast<double>(ranks * settings.samples);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] -= scale * gradient[i];
  }
  return weights;
}

}  // namespace examples
