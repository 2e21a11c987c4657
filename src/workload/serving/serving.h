// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Serving engines as programs of copies, kernels and synchronisation: what each of them asks of the
// driver in every step, over a model description. They compute nothing; the times of their kernels
// come from a roofline.
//
//   flexgen         weights (and KV, if told) stay on the host; layer by layer, block schedule
//   peft            LoRA fine-tuning with weights on the host: forward, then backward
//   vllm            continuous batching, paged KV, preempted requests swapped out and in
//   kv-restore      a request's cached prefix is brought back from the host before it is answered
//   weight-offload  a fixed number of bytes streamed in every step, as vLLM's cpu-offload does
//   decode          no swapping: the small copies of every step
//   load            a model is loaded, tensor by tensor
//
// Everything random comes from the seed. Not synchronised.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "workload/feed.h"
#include "workload/model.h"

namespace sealane::workload {

enum class Lengths : uint8_t { alpaca, sharegpt };

// How the KV of a preempted request is copied.
enum class SwapUnit : uint8_t {
  block,    // keys and values of each layer, block by block: vLLM's own way
  layer,    // keys and values of each layer, all blocks at once
  request,  // one copy
};

// How the kernels of a step reach the device.
enum class Graphs : uint8_t {
  none,       // one launch for each kernel
  piecewise,  // attention by launches, what is between two of them as a graph
  full,       // the step is one graph
};

// What nobody says of host_us, kernels_per_layer and dispatch_us is assumed. A layer's kernels are
// two norms, four products, rotation, cache, attention and an activation. From a call of PyTorch to
// its kernel pass 5 to 25 us: their geometric mean, less 2 us of the driver's launch.
constexpr double kHostUs = 1'000;
// Of each sequence of a step: scheduling it, and what is done with its token. Calibrated on SGLang
// with 256 at a time (docs/validation.md).
constexpr double kSequenceUs = 2.8;
// What a request takes outside the engine's steps before its first token: HTTP, tokenising, hops
// between processes. Geometric mean of two published, each less a step: 6 ms (NVIDIA NIM, 8 B on an
// H100, a request at a time) and 34 ms (vLLM 0.18 on an H20, 1 k tokens that are on the GPU).
constexpr double kFrontMs = 14;
constexpr double kKernelsPerLayer = 10;
constexpr double kDispatchUs = 9;

struct ServingOptions {
  uint64_t seed = 1;
  std::optional<uint64_t> batch;         // sequences that are computed together
  std::optional<uint64_t> gpu_batches;   // flexgen: batches that share a load of the weights
  std::optional<uint64_t> prompt;        // tokens
  std::optional<uint64_t> generate;      // tokens
  std::optional<uint64_t> steps;         // simulated, after the warm-up
  std::optional<double> weights_on_gpu;  // share, 0 to 1
  std::optional<double> kv_on_gpu;       // share, 0 to 1
  std::optional<double> rate;            // requests per second; 0: as fast as they are taken
  std::optional<double> minutes;
  std::optional<Lengths> lengths;
  std::optional<uint64_t> samples;  // answers to each request
  std::optional<SwapUnit> swap_unit;
  std::optional<double> offload_gb;
  std::optional<double> step_ms;  // of the device: without offload; decode: instead of a roofline's
  std::optional<uint64_t> concurrency;
  std::optional<double> host_us;      // the engine's own work between two steps
  std::optional<double> sequence_us;  // and for each sequence of a step
  std::optional<double> front_ms;     // of a request, outside the engine
  std::optional<Graphs> graphs;
  std::optional<double> kernels_per_layer;
  std::optional<double> dispatch_us;    // the framework's work before each launch
  std::optional<uint64_t> step_copies;  // small ones to the device, and one back; 0: none at all
  std::optional<uint64_t> steps_ahead;  // of the tokens it has: 1, or 0: it waits for each step
  std::optional<uint64_t> prefix;       // tokens restored for each request
  std::optional<double> read_gb_per_s;  // from where the model is loaded; 0: it is in memory
};

struct Serving {
  std::string_view name;
  std::string_view what;   // one line
  std::string_view unit;   // of throughput
  std::string_view model;  // the usual one
  std::string_view flags;  // of ServingOptions that it reads, as the command line spells them
};

std::span<const Serving> servings();
const Serving* find_serving(std::string_view name);  // nullptr if there is none of that name

// A usage error if the model and the options do not fit the machine. `serving` is one of ours.
Result<std::unique_ptr<Feed>> make_serving(const Serving& serving, const Model& model,
                                           const Roofline& gpu, const ServingOptions& options);

}  // namespace sealane::workload
