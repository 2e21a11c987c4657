// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A paged KV cache that does not fit the device. Two ways to swap it:
//   fifo  layer by layer: every step, each layer's blocks come in, take one more token per request,
//         are read, and the changed blocks go out again; the first out is the first back in
//   lifo  request by request: when blocks run out the youngest running request is preempted and its
//         blocks go out; the last out is the first back in
// Every block is read through its table as attention would, and the digests of what was read are
// checked on the host.

#include <string>

#include "kv_swap/blocks.h"
#include "kv_swap/layer_wise.h"
#include "kv_swap/request_wise.h"
#include "support/fail.h"
#include "support/gpu.h"
#include "support/options.h"
#include "support/report.h"

namespace examples {

namespace {

Settings parse(int argc, char** argv) {
  Settings s;
  Options options("Swaps blocks of a paged KV cache between device and host.");
  options.text("--mode", "fifo (layer-wise) or lifo (request-wise)", &s.mode, "fifo|lifo");
  options.number("--requests", "sequences to decode; fifo 6, lifo 12", &s.requests, 0, 256);
  options.number("--layers", "layers (fifo)", &s.layers, 2, 256);
  options.number("--block-tokens", "tokens per block", &s.block_tokens, 1, 1024);
  options.number("--token-words", "4-byte words of keys and values per token; fifo 2048, lifo 8192",
                 &s.token_words, 0, 65536);
  options.number("--prompt", "tokens a request begins with", &s.prompt, 1, 65536);
  options.number("--steps", "tokens each request adds; fifo 12, lifo 64", &s.steps, 0, 65536);
  options.number("--warmup", "steps before the clock starts", &s.warmup, 0, 65536);
  options.number("--pool-blocks", "blocks on the device (lifo)", &s.pool_blocks, 1, 65536);
  options.number("--seed", "of what the blocks hold", &s.seed, 0, UINT32_MAX);
  options.text("--json", "write the figures to a file ('-': stdout)", &s.json);
  options.parse(argc, argv);
  s.use_defaults();
  if (s.token_words % KvDigest::kWords != 0) {
    fail_usage("--token-words is a multiple of %u", KvDigest::kWords);
  }
  if (s.mode == "lifo" && s.pool_blocks < s.blocks_max()) {
    fail_usage("--pool-blocks %llu: one request alone needs %zu blocks",
               static_cast<unsigned long long>(s.pool_blocks), s.blocks_max());
  }
  return s;
}

void run(const Settings& settings) {
  gpu::init();
  const bool fifo = settings.mode == "fifo";
  Blocks blocks(settings,
                settings.requests * settings.tokens_added() * (fifo ? settings.layers : 1));
  if (fifo) {
    LayerWise(settings, blocks).run();
  } else {
    RequestWise(settings, blocks).run();
  }
  const std::string hash = blocks.check();

  const Figures& figures = blocks.figures();
  const uint64_t tokens = figures.readings / (fifo ? settings.layers : 1);
  Report report;
  report.add("example", "kv_swap");
  report.add("api", gpu::api_name());
  report.add("mode", settings.mode);
  report.add("tokens", tokens);
  report.add("bytes_in", figures.bytes_in);
  report.add("bytes_out", figures.bytes_out);
  report.add("total_s", figures.seconds);
  report.add("tokens_per_s", static_cast<double>(tokens) / figures.seconds);
  report.add("hash", hash);
  report.publish(settings.json);
}

}  // namespace

}  // namespace examples

int main(int argc, char** argv) { examples::run(examples::parse(argc, argv)); }
