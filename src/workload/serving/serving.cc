// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "workload/serving/serving.h"

#include <array>

#include "base/check.h"
#include "workload/serving/engine.h"

namespace sealane::workload {
namespace {

using Make = Result<std::unique_ptr<Feed>> (*)(const Model&, const Roofline&,
                                               const ServingOptions&);

constexpr std::array kServings{
    Serving{"flexgen", "weights and KV offloaded to the host, block schedule", "tokens/s",
            "opt-66b", "batch gpu-batches prompt generate steps weights-on-gpu kv-on-gpu"},
    Serving{"peft", "LoRA fine-tuning, weights offloaded: forward, then backward", "tokens/s",
            "opt-30b", "batch prompt steps weights-on-gpu"},
    Serving{"vllm", "continuous batching; preempted requests swapped out and in", "tokens/s",
            "opt-30b", "rate minutes lengths samples swap-unit host-us"},
    Serving{"kv-restore", "a cached prefix comes back from the host for every request",
            "requests/s", "llama-3-8b", "prefix prompt generate steps host-us front-ms"},
    Serving{"weight-offload", "some GB of weights streamed in every step (vLLM's cpu-offload)",
            "steps/s", "llama-3-70b", "offload-gb step-ms steps"},
    Serving{"decode", "no swapping: the small copies of every step", "tokens/s", "llama-3-8b",
            "concurrency prompt steps step-ms host-us sequence-us graphs kernels-per-layer "
            "dispatch-us step-copies steps-ahead"},
    Serving{"load", "a model is loaded, tensor by tensor", "GB/s", "llama-3-8b", "read-gb-per-s"},
};
constexpr std::array<Make, kServings.size()> kMakes{
    make_flexgen,        make_peft,   make_vllm, make_kv_restore,
    make_weight_offload, make_decode, make_load};

}  // namespace

std::span<const Serving> servings() { return kServings; }

const Serving* find_serving(std::string_view name) {
  for (const Serving& serving : kServings) {
    if (serving.name == name) return &serving;
  }
  return nullptr;
}

Result<std::unique_ptr<Feed>> make_serving(const Serving& serving, const Model& model,
                                           const Roofline& gpu, const ServingOptions& options) {
  for (size_t i = 0; i < kServings.size(); ++i) {
    if (kServings[i].name == serving.name) return kMakes[i](model, gpu, options);
  }
  SEALANE_CHECK(false, "a workload that is not in the list");
  return internal_error("unreachable");
}

}  // namespace sealane::workload
