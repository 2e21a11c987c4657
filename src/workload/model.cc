// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "workload/model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sealane::workload {
namespace {

constexpr Model opt(std::string_view name, uint32_t layers, uint64_t hidden) {
  return {.name = name,
          .layers = layers,
          .hidden = hidden,
          .kv_hidden = hidden,
          .feed_forward = 4 * hidden,
          .vocabulary = 50'272,
          .positions = 2'050,
          .tied_embedding = true};
}

constexpr Model llama3(std::string_view name, uint32_t layers, uint64_t hidden,
                       uint64_t feed_forward) {
  return {.name = name,
          .layers = layers,
          .hidden = hidden,
          .kv_hidden = 1'024,
          .feed_forward = feed_forward,
          .gated = true,
          .vocabulary = 128'256};
}

constexpr std::array kModels{
    opt("opt-13b", 40, 5'120),
    opt("opt-30b", 48, 7'168),
    opt("opt-66b", 64, 9'216),
    opt("opt-175b", 96, 12'288),
    llama3("llama-3-8b", 32, 4'096, 14'336),
    llama3("llama-3-70b", 80, 8'192, 28'672),
};

Duration roofline(const Roofline& gpu, double flops, double bytes) {
  const double seconds = std::max(flops / gpu.flops_per_s, bytes / gpu.bytes_per_s);
  return Duration(std::llround(seconds * 1e9));
}

}  // namespace

uint64_t Model::layer_parameters() const {
  const uint64_t attention = 2 * hidden * hidden + 2 * hidden * kv_hidden;
  const uint64_t mlp = (gated ? 3 : 2) * hidden * feed_forward;
  const uint64_t biases = gated ? 0 : 4 * hidden + feed_forward + hidden;
  const uint64_t norms = (gated ? 2 : 4) * hidden;
  return attention + mlp + biases + norms;
}

uint64_t Model::embedding_bytes() const {
  const uint64_t matrices = (tied_embedding ? 1 : 2) * vocabulary * hidden;
  return 2 * (matrices + positions * hidden + 2 * hidden);
}

std::span<const Model> models() { return kModels; }

const Model* find_model(std::string_view name) {
  for (const Model& model : kModels) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

Duration layer_time(const Model& model, const Roofline& gpu, const Batch& batch) {
  // Multiply and add for every parameter and token; two products for every pair.
  const auto parameters = static_cast<double>(model.layer_parameters());
  const double flops = 2 * parameters * static_cast<double>(batch.tokens) +
                       4 * static_cast<double>(model.hidden) * static_cast<double>(batch.pairs);
  const auto kv_bytes = static_cast<double>(batch.context * model.kv_bytes_per_token_and_layer());
  return roofline(gpu, flops, 2 * parameters + kv_bytes);
}

Duration step_time(const Model& model, const Roofline& gpu, const Batch& batch) {
  const auto output = static_cast<double>(model.vocabulary * model.hidden);
  return layer_time(model, gpu, batch) * model.layers +
         roofline(gpu, 2 * output * static_cast<double>(batch.tokens), 2 * output);
}

}  // namespace sealane::workload
