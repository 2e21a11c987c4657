// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "workload/training.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace sealane::workload {
namespace {

using Tensors = std::vector<uint64_t>;

void add(Tensors& all, std::initializer_list<uint64_t> more) {
  all.insert(all.end(), more.begin(), more.end());
}

Tensors gpt2(uint64_t hidden, uint32_t layers) {
  const uint64_t h = hidden;
  Tensors all{50'257 * h, 1'024 * h};
  for (uint32_t i = 0; i < layers; ++i) {
    add(all, {h, h, 3 * h * h, 3 * h, h * h, h, h, h, 4 * h * h, 4 * h, 4 * h * h, h});
  }
  add(all, {h, h});
  return all;
}

Tensors bert(uint64_t hidden, uint32_t layers) {
  const uint64_t h = hidden;
  Tensors all{30'522 * h, 512 * h, 2 * h, h, h};
  for (uint32_t i = 0; i < layers; ++i) {
    add(all, {h * h, h, h * h, h, h * h, h, h * h, h});  // query, key, value, output
    add(all, {h, h, 4 * h * h, 4 * h, 4 * h * h, h, h, h});
  }
  add(all, {h * h, h});
  return all;
}

Tensors vit_large() {
  constexpr uint64_t h = 1'024;
  Tensors all{h, h * 3 * 16 * 16, h, 197 * h};
  for (uint32_t i = 0; i < 24; ++i) {
    add(all, {h, h, 3 * h * h, 3 * h, h * h, h, h, h, 4 * h * h, 4 * h, 4 * h * h, h});
  }
  add(all, {h, h, 1'000 * h, 1'000});
  return all;
}

Tensors vgg16() {
  Tensors all;
  uint64_t in = 3;
  for (const uint64_t out : {64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512}) {
    add(all, {out * in * 9, out});
    in = out;
  }
  add(all, {25'088 * 4'096, 4'096, 4'096 * 4'096, 4'096, 4'096 * 1'000, 1'000});
  return all;
}

Tensors resnet50() {
  struct Stage {
    uint64_t width;
    uint32_t blocks;
  };
  Tensors all{64 * 3 * 49, 64, 64};
  uint64_t in = 64;
  for (const auto& [width, blocks] :
       std::array<Stage, 4>{{{64, 3}, {128, 4}, {256, 6}, {512, 3}}}) {
    const uint64_t out = 4 * width;
    for (uint32_t i = 0; i < blocks; ++i) {
      add(all, {width * in, width, width, width * width * 9, width, width, out * width, out, out});
      if (i == 0) add(all, {out * in, out, out});
      in = out;
    }
  }
  add(all, {2'048 * 1'000, 1'000});
  return all;
}

constexpr double tflop(double parameters_m, double tokens) {
  return 6 * parameters_m * 1e6 * tokens / 1e12;
}

// Work: convolutions by the usual counts of multiply-adds (4.1 and 15.5 G per image of 224 x 224),
// transformers by 6 floating-point operations per parameter and token.
const std::array kTrainingModels{
    TrainingModel{"resnet-50", "ResNet-50, 224 x 224", 3 * 2 * 4.1e-3, 256, resnet50},
    TrainingModel{"vgg-16", "VGG-16, 224 x 224", 3 * 2 * 15.5e-3, 128, vgg16},
    TrainingModel{"vit-l", "ViT-L/16, 224 x 224", tflop(304.3, 197), 64, vit_large},
    TrainingModel{"bert-base", "BERT-base, 512 tokens", tflop(109.5, 512), 64,
                  [] { return bert(768, 12); }},
    TrainingModel{"bert-large", "BERT-large, 512 tokens", tflop(335.1, 512), 32,
                  [] { return bert(1'024, 24); }},
    TrainingModel{"gpt2", "GPT-2, 1,024 tokens", tflop(124.4, 1'024), 16,
                  [] { return gpt2(768, 12); }},
    TrainingModel{"gpt2-medium", "GPT-2 medium, 1,024 tokens", tflop(354.8, 1'024), 8,
                  [] { return gpt2(1'024, 24); }},
    TrainingModel{"gpt2-large", "GPT-2 large, 1,024 tokens", tflop(774.0, 1'024), 4,
                  [] { return gpt2(1'280, 36); }},
    TrainingModel{"gpt2-xl", "GPT-2 XL, 1,024 tokens", tflop(1'557.6, 1'024), 2,
                  [] { return gpt2(1'600, 48); }},
};

}  // namespace

uint64_t TrainingModel::gradient_bytes() const {
  const Tensors all = tensors();
  return 4 * std::accumulate(all.begin(), all.end(), uint64_t{0});
}

std::span<const TrainingModel> training_models() { return kTrainingModels; }

const TrainingModel* find_training_model(std::string_view name) {
  for (const TrainingModel& model : kTrainingModels) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

std::vector<uint64_t> gradient_buckets(const TrainingModel& model, uint64_t cap_bytes) {
  constexpr uint64_t kFirstCap = 1_MiB;  // so that communication begins early
  const Tensors all = model.tensors();
  std::vector<uint64_t> buckets;
  uint64_t bytes = 0;
  for (auto tensor = all.rbegin(); tensor != all.rend(); ++tensor) {
    bytes += 4 * *tensor;
    if (bytes < (buckets.empty() ? std::min(kFirstCap, cap_bytes) : cap_bytes)) continue;
    buckets.push_back(bytes);
    bytes = 0;
  }
  if (bytes > 0) buckets.push_back(bytes);
  return buckets;
}

}  // namespace sealane::workload
