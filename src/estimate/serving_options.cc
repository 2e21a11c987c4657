// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of serving workloads, said once for the command line and for manifests.

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/words.h"
#include "estimate/serving.h"

namespace sealane::estimate {
namespace {

using Options = workload::ServingOptions;

template <auto Member>
void set_choice(Options& options, size_t index) {
  using Word = typename std::decay_t<decltype(options.*Member)>::value_type;
  options.*Member = static_cast<Word>(index);
}

const std::array kOptions{
    ServingOption{"batch", &Options::batch, "N", 1, 1e6, "Sequences or samples computed together"},
    ServingOption{"gpu-batches", &Options::gpu_batches, "N", 1, 64,
                  "flexgen: batches for each load of weights [1]"},
    ServingOption{"prompt", &Options::prompt, "N", 1, 1e5, "Tokens of a prompt or sample"},
    ServingOption{"generate", &Options::generate, "N", 1, 1e5, "Tokens of an answer"},
    ServingOption{"steps", &Options::steps, "N", 1, 1e5, "Steps to simulate after the warm-up"},
    ServingOption{"weights-on-gpu", &Options::weights_on_gpu, "0..1", 0, 1,
                  "Share that is not offloaded [0]"},
    ServingOption{"kv-on-gpu", &Options::kv_on_gpu, "0..1", 0, 1,
                  "flexgen: share of KV that is not offloaded [1]"},
    ServingOption{"rate", &Options::rate, "R", 0, 1e4,
                  "vllm: requests per second; 0: as fast as they are taken [0]"},
    ServingOption{"minutes", &Options::minutes, "M", 0.01, 1e4, "vllm: time to simulate [2]"},
    ServingOption{"lengths", &set_choice<&Options::lengths>, "alpaca|sharegpt", 0, 0,
                  "vllm: of prompts and answers [sharegpt]"},
    ServingOption{"samples", &Options::samples, "N", 1, 16, "vllm: answers to each request [2]"},
    ServingOption{"swap-unit", &set_choice<&Options::swap_unit>, "block|layer|request", 0, 0,
                  "vllm: what one copy moves [layer]"},
    ServingOption{"offload-gb", &Options::offload_gb, "GB", 0.001, 1e4,
                  "weight-offload: streamed in every step [10]"},
    ServingOption{"step-ms", &Options::step_ms, "MS", 0.001, 1e6,
                  "A step of the GPU; weight-offload [40], decode [roofline]"},
    ServingOption{"concurrency", &Options::concurrency, "N", 1, 1e5,
                  "decode: sequences at a time [16]"},
    ServingOption{"host-us", &Options::host_us, "US", 0, 1e7,
                  "The engine's own work for each step [1000]"},
    ServingOption{"sequence-us", &Options::sequence_us, "US", 0, 1e5,
                  "decode: and for each sequence of a step [2.8]"},
    ServingOption{"front-ms", &Options::front_ms, "MS", 0, 1e6,
                  "kv-restore: of a request, outside the engine's steps [14]"},
    ServingOption{"graphs", &set_choice<&Options::graphs>, "none|piecewise|full", 0, 0,
                  "decode: how a step is launched [full]"},
    ServingOption{"kernels-per-layer", &Options::kernels_per_layer, "N", 1, 1e3,
                  "decode: launched one by one without graphs [10]"},
    ServingOption{"dispatch-us", &Options::dispatch_us, "US", 0, 1e5,
                  "decode: the framework's work before a launch [9]"},
    ServingOption{"step-copies", &Options::step_copies, "N", 0, 1e4,
                  "decode: small copies in of every step, and one out; 0: none [5]"},
    ServingOption{"steps-ahead", &Options::steps_ahead, "0|1", 0, 1,
                  "decode: the engine works ahead of the tokens it has, or waits for each step "
                  "[1]"},
    ServingOption{"prefix", &Options::prefix, "N", 1, 1e7,
                  "kv-restore: tokens brought back [4096]"},
    ServingOption{"read-gb-per-s", &Options::read_gb_per_s, "GB/S", 0, 1e3,
                  "load: of the file; 0: it is in memory [0]"},
};

}  // namespace

std::span<const ServingOption> serving_options() { return kOptions; }

bool set_serving_word(const ServingOption& option, const std::string& word, Options& options) {
  const std::vector<std::string> words = split(option.takes, '|');
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return false;
  std::get<SetWord>(option.to)(options, static_cast<size_t>(found - words.begin()));
  return true;
}

}  // namespace sealane::estimate
