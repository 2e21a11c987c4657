// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Three ways to run the model, each with its own pattern of copies. All of them end in the same
// numbers for the same settings, wherever the bytes travelled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mini_llm/model.h"
#include "support/report.h"

namespace examples {

struct Settings {
  std::string schedule = "flexgen";
  uint64_t layers = 4;
  uint64_t hidden = 384;
  uint64_t steps = 0;     // 0: the schedule's own default
  uint64_t warmup = 0;    // steps before the clock starts
  uint64_t requests = 0;  // 0: likewise
  uint64_t prompt = 8;
  uint64_t pool_blocks = 32;
  uint64_t seed = 1;
  std::string graphs = "on";  // vllm
  std::string verify = "on";
  std::string json;

  uint64_t steps_or(uint64_t preset) const { return steps != 0 ? steps : preset; }
  uint64_t requests_or(uint64_t preset) const { return requests != 0 ? requests : preset; }
};

// A token the device chose and the logit that made it win.
struct Choice {
  int32_t token;
  float logit;
};

// A request: what it asked and what came out.
struct Generation {
  std::vector<int32_t> prompt;
  std::vector<Choice> choices;

  // The token at a position of prompt and choices together.
  int32_t token_at(size_t position) const {
    return position < prompt.size() ? prompt[position] : choices[position - prompt.size()].token;
  }
};

std::vector<int32_t> make_prompt(const Settings& settings, const Shape& shape, size_t request,
                                 size_t tokens);
std::string hash_of(const std::vector<Generation>& generations);

// Weights offloaded: every step streams all layers.
void run_flexgen(const Settings& settings, const Model& model, Report& report);
// Continuous batching over a KV pool that is too small: requests are preempted and swapped.
void run_vllm(const Settings& settings, const Model& model, Report& report);
// Training of low-rank adapters: offloaded weights stream forwards, then backwards.
void run_peft(const Settings& settings, const Model& model, Report& report);

}  // namespace examples
