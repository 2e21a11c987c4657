// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The copy patterns predictors are measured on, as sequences of copies made from a seed. Tests hold
// the figures, bench/predict_bench prints them. Each pattern says which copies count: bulk copies
// to the device, once the pattern has had the time to be learned that it is promised.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "core/predict/predictor.h"
#include "core/predict/testing/hit_meter.h"

namespace sealane::patterns {

struct Step {
  Transfer transfer;
  bool counts = false;
};

struct Pattern {
  std::string name;
  std::vector<Step> steps;

  void to_device(const Range& host, bool counts = true) {
    steps.push_back({{Direction::to_device, host}, counts});
  }
  void to_host(const Range& host) { steps.push_back({{Direction::to_host, host}, false}); }
};

// `count` buffers of one size, in random places that do not overlap.
inline std::vector<Range> scattered(size_t count, uint64_t bytes, uint64_t base, uint64_t seed) {
  std::vector<Range> buffers(count);
  for (size_t i = 0; i < count; ++i) buffers[i] = {base + 2 * i * bytes, bytes};
  SeededRandom random(seed);
  for (size_t i = count; i > 1; --i) std::swap(buffers[i - 1], buffers[random.below(i)]);
  return buffers;
}

// Weights of a model: a few sizes, a small one among them.
inline std::vector<Range> weights(size_t count, uint64_t base, uint64_t seed) {
  constexpr uint64_t kSizes[] = {4_MiB, 1_MiB, 11_MiB, 256_KiB};
  std::vector<Range> buffers = scattered(count, 16_MiB, base, seed);
  for (size_t i = 0; i < count; ++i) buffers[i].bytes = kSizes[i % std::size(kSizes)];
  return buffers;
}

constexpr uint64_t kWeightsBase = uint64_t{1} << 40;
constexpr uint64_t kOtherBase = uint64_t{1} << 41;
constexpr uint64_t kControlBase = uint64_t{1} << 42;
constexpr uint64_t kNoiseBase = uint64_t{1} << 43;

// A control copy that will not come again.
inline Range fresh_control(SeededRandom& random) {
  return {kNoiseBase + random.below(uint64_t{1} << 40), 64 + 8 * random.below(1000)};
}

inline Pattern repetition(uint64_t seed, size_t periods = 40) {
  Pattern pattern{"repetition", {}};
  const auto layers = weights(60, kWeightsBase, seed);
  for (size_t period = 0; period < periods; ++period) {
    for (const Range& layer : layers) pattern.to_device(layer, period >= 2);
  }
  return pattern;
}

inline Pattern after_warm_up(uint64_t seed) {
  Pattern pattern{"repetition after warm-up", {}};
  SeededRandom random(seed);
  for (int i = 0; i < 2000; ++i) {
    pattern.to_device({kNoiseBase + random.below(1 << 20) * 1_MiB, 1_MiB}, false);
  }
  auto loop = repetition(seed);
  pattern.steps.insert(pattern.steps.end(), loop.steps.begin(), loop.steps.end());
  return pattern;
}

// embedding, (layers) x 3, (expert layers) x 2, head: the inner loops differ.
inline Pattern nested(uint64_t seed) {
  Pattern pattern{"nested loops", {}};
  const auto outer = weights(2, kOtherBase, seed);
  const auto inner = weights(16, kWeightsBase, seed + 1);
  for (int period = 0; period < 30; ++period) {
    pattern.to_device(outer[0], period >= 2);
    for (int i = 0; i < 24; ++i) pattern.to_device(inner[i % 8], period >= 2);
    for (int i = 0; i < 16; ++i) pattern.to_device(inner[8 + i % 8], period >= 2);
    pattern.to_device(outer[1], period >= 2);
  }
  return pattern;
}

// Four phases, each a loop that shares half its buffers with the one before, in another order.
inline Pattern phase_change(uint64_t seed) {
  Pattern pattern{"phase change", {}};
  for (uint64_t phase = 0; phase < 4; ++phase) {
    auto all = weights(120, kWeightsBase, seed);
    std::rotate(all.begin(), all.begin() + static_cast<long>(phase) * 24, all.end());
    all.resize(48);
    if (phase % 2 == 1) std::reverse(all.begin(), all.end());
    for (int period = 0; period < 20; ++period) {
      for (const Range& layer : all) pattern.to_device(layer, period >= 2);
    }
  }
  return pattern;
}

// Fine-tuning: weights forward, then backward, and the gradients go out on the way back.
inline Pattern forward_backward(uint64_t seed, size_t controls = 0) {
  Pattern pattern{controls == 0 ? "forward, backward" : "forward, backward + control", {}};
  const auto layers = weights(40, kWeightsBase, seed);
  const auto gradients = weights(40, kOtherBase, seed + 1);
  const auto pool = scattered(16, 4_KiB, kControlBase, seed + 2);
  SeededRandom random(seed);
  const auto control = [&] {
    for (size_t i = random.below(controls + 1); i > 0; --i) {
      pattern.to_device(pool[random.below(pool.size())], false);
    }
  };
  for (int period = 0; period < 30; ++period) {
    for (size_t i = 0; i < layers.size(); ++i) {
      control();
      pattern.to_device(layers[i], period >= 2);
    }
    for (size_t i = layers.size(); i-- > 0;) {
      control();
      pattern.to_device(layers[i], period >= 2);
      pattern.to_host(gradients[i]);
    }
  }
  return pattern;
}

// Two loops over equally large blocks, so many steps of the first to so many of the second, in
// turns or at random. With lengths that have no common divisor the joint sequence repeats only
// after their product.
struct TwoLoops {
  size_t first_length = 61;
  size_t second_length = 37;
  size_t first_steps = 3;
  size_t second_steps = 2;
  bool regular = true;
};

inline Pattern two_loops(uint64_t seed, const TwoLoops& loops) {
  Pattern pattern{loops.regular ? "two loops, 3 to 2" : "two loops, at random", {}};
  const auto a = scattered(loops.first_length, 2_MiB, kWeightsBase, seed);
  const auto b = scattered(loops.second_length, 2_MiB, kOtherBase, seed + 1);
  SeededRandom random(seed);
  const size_t steps = loops.first_steps + loops.second_steps;
  size_t at_a = 0, at_b = 0;
  for (size_t i = 0; i < 6000; ++i) {
    const size_t turn = loops.regular ? i % steps : random.below(steps);
    const bool counts = at_a >= 3 * a.size() && at_b >= 3 * b.size();
    pattern.to_device(turn < loops.first_steps ? a[at_a++ % a.size()] : b[at_b++ % b.size()],
                      counts);
  }
  return pattern;
}

inline Pattern two_loops(uint64_t seed, bool regular) {
  return two_loops(seed, TwoLoops{.regular = regular});
}

// Lengths and pace drawn at random.
inline Pattern any_two_loops(uint64_t seed, bool regular) {
  SeededRandom random(seed);
  TwoLoops loops{.regular = regular};
  loops.first_length = random.between(8, 120);
  loops.second_length = random.between(8, 120);
  loops.first_steps = random.between(1, 6);
  loops.second_steps = random.between(1, 3);
  return two_loops(seed, loops);
}

// Sampled tokens go to the host all the time and never return.
inline void sample_tokens(Pattern& pattern) { pattern.to_host({kControlBase, 4_KiB}); }

// Layer-wise KV swapping: blocks go out to whatever host block is unused and return in that order.
inline Pattern fifo_swap(uint64_t seed) {
  Pattern pattern{"FIFO swaps", {}};
  SeededRandom random(seed);
  auto unused = scattered(512, 512_KiB, kWeightsBase, seed);
  std::deque<Range> out;
  for (int i = 0; i < 4000; ++i) {
    const bool swap_out = out.empty() || (out.size() < 200 && random.chance(0.5));
    if (i % 16 == 0) sample_tokens(pattern);
    if (swap_out) {
      std::swap(unused.back(), unused[random.below(unused.size())]);
      out.push_back(unused.back());
      unused.pop_back();
      pattern.to_host(out.back());
    } else {
      pattern.to_device(out.front(), i >= 200);
      unused.push_back(out.front());
      out.pop_front();
    }
  }
  return pattern;
}

// Request-wise KV swapping: the request preempted last returns first; its blocks in reverse order,
// or (grouped) in the order they went out.
inline Pattern lifo_swap(uint64_t seed, bool grouped) {
  Pattern pattern{grouped ? "LIFO swaps by request" : "LIFO swaps", {}};
  SeededRandom random(seed);
  auto unused = scattered(4096, 512_KiB, kWeightsBase, seed);
  std::vector<std::vector<Range>> out;
  for (int i = 0; i < 400; ++i) {
    for (int token = 0; token < 8; ++token) sample_tokens(pattern);
    if (out.empty() || (out.size() < 50 && random.chance(0.5))) {
      auto& request = out.emplace_back();
      for (size_t block = random.between(4, 60); block > 0; --block) {
        std::swap(unused.back(), unused[random.below(unused.size())]);
        request.push_back(unused.back());
        pattern.to_host(unused.back());
        unused.pop_back();
      }
    } else {
      auto request = std::move(out.back());
      out.pop_back();
      if (!grouped) std::reverse(request.begin(), request.end());
      for (const Range& block : request) pattern.to_device(block, i >= 20);
      unused.insert(unused.end(), request.begin(), request.end());
    }
  }
  return pattern;
}

// Three random control copies around every step; their ranges never recur, or come from a pool.
inline Pattern with_control(uint64_t seed, bool recurring) {
  Pattern pattern{recurring ? "repetition + 3 control, pool" : "repetition + 3 control, fresh", {}};
  SeededRandom random(seed);
  const auto layers = weights(60, kWeightsBase, seed);
  const auto pool = scattered(16, 4_KiB, kControlBase, seed);
  for (int period = 0; period < 30; ++period) {
    for (const Range& layer : layers) {
      for (int i = 0; i < 3; ++i) {
        const Range control = recurring ? pool[random.below(pool.size())] : fresh_control(random);
        if (i == 2 && random.chance(0.5)) {
          pattern.to_host(control);
        } else {
          pattern.to_device(control, false);
        }
      }
      pattern.to_device(layer, period >= 2);
    }
  }
  return pattern;
}

// Model loading: `streams` files are read in turns, chunk by chunk.
inline Pattern sequential(uint64_t seed, size_t streams, uint64_t stride_bytes) {
  Pattern pattern{streams == 1 ? "sequential" : "sequential, 3 streams", {}};
  if (stride_bytes != 4_MiB) pattern.name = "sequential, strided";
  SeededRandom random(seed);
  for (int file = 0; file < 4; ++file) {
    const uint64_t base = kWeightsBase + static_cast<uint64_t>(file) * 64_GiB;
    for (uint64_t chunk = 0; chunk < 500; ++chunk) {
      for (uint64_t stream = 0; stream < streams; ++stream) {
        const uint64_t address = base + stream * 8_GiB + chunk * stride_bytes;
        pattern.to_device({address, 4_MiB}, chunk >= 8 || file > 0);
      }
    }
  }
  return pattern;
}

inline Pattern random_copies(uint64_t seed, bool fresh) {
  Pattern pattern{fresh ? "random, fresh" : "random, known", {}};
  SeededRandom random(seed);
  const auto known = scattered(1000, 1_MiB, kWeightsBase, seed);
  for (int i = 0; i < 10000; ++i) {
    const Range anywhere{kNoiseBase + random.below(1 << 30) * 4_KiB, 1_MiB};
    pattern.to_device(fresh ? anywhere : known[random.below(known.size())]);
  }
  return pattern;
}

inline std::vector<Pattern> all(uint64_t seed) {
  return {repetition(seed),
          after_warm_up(seed),
          nested(seed),
          phase_change(seed),
          forward_backward(seed),
          forward_backward(seed, 3),
          two_loops(seed, true),
          two_loops(seed, false),
          with_control(seed, false),
          with_control(seed, true),
          fifo_swap(seed),
          lifo_swap(seed, false),
          lifo_swap(seed, true),
          sequential(seed, 1, 4_MiB),
          sequential(seed, 3, 4_MiB),
          sequential(seed, 1, 12_MiB),
          random_copies(seed, false),
          random_copies(seed, true)};
}

// Feeds the pattern to anything that observes and predicts.
template <typename Source>
HitMeter measure(Source& source, const Pattern& pattern, size_t leeway) {
  HitMeter meter(leeway);
  std::vector<Guess> next(leeway);
  source.allow({0, UINT64_MAX});
  for (const Step& step : pattern.steps) {
    if (step.counts) {
      const size_t count = source.predict(next);
      meter.count(std::span<const Guess>(next).first(count), step.transfer.host);
    }
    source.observe(step.transfer);
  }
  return meter;
}

}  // namespace sealane::patterns
