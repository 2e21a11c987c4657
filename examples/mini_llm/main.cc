// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A small but real transformer under three schedules, each the pattern of copies of a system people
// use. Prints what it reached in device time, and a hash of its tokens or losses that does not
// depend on how the bytes travelled.

#include "mini_llm/schedule.h"
#include "support/fail.h"
#include "support/gpu.h"
#include "support/options.h"

namespace examples {

namespace {

Settings parse(int argc, char** argv) {
  Settings s;
  Options options("Runs a small transformer whose weights or KV cache do not fit the device.");
  options.text("--schedule",
               "flexgen (weights offloaded), vllm (batching, KV swapping), peft (LoRA)",
               &s.schedule, "flexgen|vllm|peft");
  options.number("--layers", "of the model", &s.layers, 1, 64);
  options.number("--hidden", "width of the model, a multiple of 64", &s.hidden, 64, 4096);
  options.number("--steps",
                 "tokens per request (flexgen 16, vllm up to 48) or training steps (peft 5); "
                 "0: the schedule's own number",
                 &s.steps, 0, 4096);
  options.number("--warmup", "steps before the clock starts", &s.warmup, 0, 4096);
  options.number("--requests", "flexgen 4, vllm 32; 0: the schedule's own number", &s.requests, 0,
                 256);
  options.number("--prompt",
                 "tokens of a prompt (vllm: up to twice as many; peft: a sequence has twice)",
                 &s.prompt, 1, 512);
  options.number("--pool-blocks", "KV blocks of 16 tokens on the device (vllm)", &s.pool_blocks, 1,
                 65536);
  options.text("--graphs", "run a step's kernels as a graph: on, off (vllm)", &s.graphs, "on|off");
  options.number("--seed", "of weights and prompts", &s.seed, 0, UINT64_MAX);
  options.text("--verify", "compare with a host implementation: on, off", &s.verify, "on|off");
  options.text("--json", "write the figures to a file ('-': stdout)", &s.json);
  options.parse(argc, argv);
  if (s.hidden % kHeadWidth != 0) fail_usage("--hidden is a multiple of %u", kHeadWidth);
  return s;
}

void run(const Settings& settings) {
  gpu::init();
  const Shape shape{static_cast<uint32_t>(settings.layers), static_cast<uint32_t>(settings.hidden)};
  const Model model(shape, settings.seed);
  Report report;
  report.add("example", "mini_llm");
  report.add("api", gpu::api_name());
  report.add("schedule", settings.schedule);
  report.add("weight_bytes", model.matrix_bytes());
  if (settings.schedule == "flexgen") {
    run_flexgen(settings, model, report);
  } else if (settings.schedule == "vllm") {
    run_vllm(settings, model, report);
  } else {
    run_peft(settings, model, report);
  }
  report.publish(settings.json);
}

}  // namespace

}  // namespace examples

int main(int argc, char** argv) { examples::run(examples::parse(argc, argv)); }
