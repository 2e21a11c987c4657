// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The copies of a decoding server without swapping: each step sends token ids, positions and the
// block-table entries that changed, and fetches logits and chosen tokens. They are small and many,
// so what counts is what each crossing costs.

#include <cstdint>
#include <string>
#include <vector>

#include "support/fail.h"
#include "support/gpu.h"
#include "support/options.h"
#include "support/random.h"
#include "support/report.h"

namespace examples {

namespace {

struct Settings {
  uint64_t batch = 32;
  uint64_t vocabulary = 64;
  uint64_t block_tokens = 16;
  uint64_t steps = 400;
  uint64_t warmup = 0;
  uint64_t seed = 1;
  std::string json;

  uint64_t all_steps() const { return warmup + steps; }
  // A sequence begins anywhere in its first block, so that not all change blocks at once.
  size_t position(size_t sequence, size_t step) const {
    return Random(seed + sequence).below(block_tokens) + step;
  }
  size_t table_columns() const { return (all_steps() + block_tokens - 1) / block_tokens + 1; }
  int32_t block_number(size_t sequence, size_t column) const {
    return static_cast<int32_t>(Random(seed ^ (sequence << 32 | column)).below(1 << 24));
  }
  int32_t first_token(size_t sequence) const {
    return static_cast<int32_t>(Random(~seed + sequence).below(vocabulary));
  }
};

Settings parse(int argc, char** argv) {
  Settings s;
  Options options("Decodes with a few small copies per step, as a serving engine does.");
  options.number("--batch", "sequences", &s.batch, 1, 4096);
  options.number("--vocabulary", "logits per sequence", &s.vocabulary, 2, 65536);
  options.number("--block-tokens", "tokens per KV block: how often a table entry is sent",
                 &s.block_tokens, 1, 1024);
  options.number("--steps", "tokens per sequence", &s.steps, 1, 100000);
  options.number("--warmup", "steps before the clock starts", &s.warmup, 0, 100000);
  options.number("--seed", "of first tokens and block numbers", &s.seed, 0, UINT64_MAX);
  options.text("--json", "write the figures to a file ('-': stdout)", &s.json);
  options.parse(argc, argv);
  return s;
}

// What each step fetched, in order.
struct Fetched {
  std::vector<int32_t> tokens;
  std::vector<uint32_t> logits;
};

class Decoder {
 public:
  explicit Decoder(const Settings& settings)
      : settings_(settings),
        host_{gpu::PinnedBuffer<int32_t>(settings.batch),
              gpu::PinnedBuffer<int32_t>(settings.batch),
              gpu::PinnedBuffer<int32_t>(settings.batch * settings.table_columns()),
              gpu::PinnedBuffer<uint32_t>(settings.batch * settings.vocabulary)},
        tokens_(settings.batch),
        positions_(settings.batch),
        table_(host_.table.size()),
        states_(settings.batch),
        logits_(host_.logits.size()) {}

  ~Decoder() { gpu::destroy(stream_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Returns device seconds without the warm-up.
  double run(Fetched& fetched) {
    start();
    run_steps(0, settings_.warmup, fetched);
    copies_ = 0;
    gpu::Stopwatch watch(stream_);
    run_steps(settings_.warmup, settings_.all_steps(), fetched);
    return watch.stop(stream_);
  }

  uint64_t copies() const { return copies_; }  // since the clock started

 private:
  void run_steps(size_t first, size_t end, Fetched& fetched) {
    for (size_t step = first; step < end; ++step) {
      send(step);
      compute();
      gpu::copy_out(host_.logits.data(), logits_.data(), logits_.bytes(), stream_);
      gpu::copy_out(host_.tokens.data(), tokens_.data(), tokens_.bytes(), stream_);
      copies_ += 2;
      gpu::synchronize(stream_);
      const uint32_t* const logits = host_.logits.data();
      fetched.logits.insert(fetched.logits.end(), logits, logits + host_.logits.size());
      const int32_t* const tokens = host_.tokens.data();
      fetched.tokens.insert(fetched.tokens.end(), tokens, tokens + host_.tokens.size());
    }
  }

  void start() {
    for (size_t b = 0; b < settings_.batch; ++b) {
      host_.tokens[b] = settings_.first_token(b);
      for (size_t column = 0; column < settings_.table_columns(); ++column) {
        host_.table[b * settings_.table_columns() + column] =
            column == 0 ? settings_.block_number(b, 0) : -1;
      }
    }
    gpu::copy_in(table_.data(), host_.table.data(), table_.bytes(), stream_);
    gpu::fill_zero(states_.data(), states_.bytes(), stream_);
    gpu::synchronize(stream_);
  }

  void send(size_t step) {
    gpu::copy_in(tokens_.data(), host_.tokens.data(), tokens_.bytes(), stream_);
    for (size_t b = 0; b < settings_.batch; ++b) {
      const size_t position = settings_.position(b, step);
      host_.positions[b] = static_cast<int32_t>(position);
      if (position % settings_.block_tokens == 0) send_table_entry(b, position);
    }
    gpu::copy_in(positions_.data(), host_.positions.data(), positions_.bytes(), stream_);
    copies_ += 2;
  }

  void send_table_entry(size_t sequence, size_t position) {
    const size_t column = position / settings_.block_tokens;
    const size_t entry = sequence * settings_.table_columns() + column;
    host_.table[entry] = settings_.block_number(sequence, column);
    gpu::copy_in(table_.data() + entry, &host_.table[entry], sizeof(int32_t), stream_);
    ++copies_;
  }

  void compute() {
    const auto batch = static_cast<uint32_t>(settings_.batch);
    const auto vocabulary = static_cast<uint32_t>(settings_.vocabulary);
    gpu::launch(
        DecodeStep{tokens_.data(), positions_.data(), table_.data(), states_.data(), logits_.data(),
                   batch, vocabulary, static_cast<uint32_t>(settings_.table_columns()),
                   static_cast<uint32_t>(settings_.block_tokens)},
        stream_);
    gpu::launch(PickToken{logits_.data(), tokens_.data(), batch, vocabulary}, stream_);
  }

  struct Host {
    gpu::PinnedBuffer<int32_t> tokens;
    gpu::PinnedBuffer<int32_t> positions;
    gpu::PinnedBuffer<int32_t> table;
    gpu::PinnedBuffer<uint32_t> logits;
  };

  const Settings& settings_;
  gpu::Stream stream_ = gpu::make_stream();
  Host host_;
  gpu::DeviceBuffer<int32_t> tokens_;
  gpu::DeviceBuffer<int32_t> positions_;
  gpu::DeviceBuffer<int32_t> table_;
  gpu::DeviceBuffer<uint32_t> states_;
  gpu::DeviceBuffer<uint32_t> logits_;
  uint64_t copies_ = 0;
};

// Decodes one sequence on the host and compares each step.
void check(const Settings& settings, const Fetched& fetched, size_t sequence) {
  int32_t token = settings.first_token(sequence);
  uint32_t state = 0;
  for (size_t step = 0; step < settings.all_steps(); ++step) {
    const size_t position = settings.position(sequence, step);
    const int32_t block = settings.block_number(sequence, position / settings.block_tokens);
    state = mix(state, mix(static_cast<uint32_t>(token),
                           mix(static_cast<uint32_t>(position), static_cast<uint32_t>(block))));
    const size_t row = step * settings.batch + sequence;
    uint32_t best = 0;
    for (uint32_t v = 0; v < settings.vocabulary; ++v) {
      const uint32_t logit = mix(state, v);
      if (fetched.logits[row * settings.vocabulary + v] != logit) {
        fail("step %zu, sequence %zu: logit %u is wrong", step, sequence, v);
      }
      if (logit > mix(state, best)) best = v;
    }
    token = static_cast<int32_t>(best);
    if (fetched.tokens[row] != token) {
      fail("step %zu, sequence %zu: the chosen token is wrong", step, sequence);
    }
  }
}

void run(const Settings& settings) {
  gpu::init();
  Fetched fetched;
  fetched.tokens.reserve(settings.all_steps() * settings.batch);
  fetched.logits.reserve(settings.all_steps() * settings.batch * settings.vocabulary);
  double seconds = 0;
  uint64_t copies = 0;
  {
    Decoder decoder(settings);
    seconds = decoder.run(fetched);
    copies = decoder.copies();
  }
  for (size_t b = 0; b < settings.batch; ++b) check(settings, fetched, b);

  Hash hash;
  for (const int32_t token : fetched.tokens) hash.add(static_cast<uint64_t>(token));
  Report report;
  report.add("example", "decode_loop");
  report.add("api", gpu::api_name());
  report.add("steps", settings.steps);
  report.add("copies", copies);
  report.add("total_s", seconds);
  report.add("tokens_per_s", static_cast<double>(settings.steps * settings.batch) / seconds);
  report.add("hash", hash.text());
  report.publish(settings.json);
}

}  // namespace

}  // namespace examples

int main(int argc, char** argv) { examples::run(examples::parse(argc, argv)); }
