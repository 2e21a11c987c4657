// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A model too large for the device: its weights stay in host memory and are streamed layer by
// layer, every step, into two device buffers: while one layer computes, the next one arrives.
// `--order random` and `--rewrite` make it a program that nobody can predict.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "support/fail.h"
#include "support/gpu.h"
#include "support/options.h"
#include "support/random.h"
#include "support/report.h"

namespace examples {

namespace {

struct Settings {
  uint64_t layers = 8;
  uint64_t matrices = 2;  // per layer, one copy each
  uint64_t width = 1024;  // a matrix is width x width words
  uint64_t batch = 1;
  uint64_t steps = 8;
  uint64_t warmup = 0;
  uint64_t rewrite_percent = 0;
  uint64_t seed = 1;
  std::string order = "sequential";
  std::string lockstep = "off";
  std::string json;

  uint64_t all_steps() const { return warmup + steps; }
  size_t matrix_words() const { return width * width; }
  size_t layer_words() const { return matrices * matrix_words(); }
  uint64_t bytes_in() const { return steps * layers * layer_words() * sizeof(uint32_t); }
};

Settings parse(int argc, char** argv) {
  Settings s;
  Options options("Streams a model's weights to the device, layer by layer, while it computes.");
  options.number("--layers", "layers of the model", &s.layers, 2, 1000);
  options.number("--matrices", "matrices per layer, one copy each", &s.matrices, 1, 16);
  options.number("--width", "rows and columns of a matrix of 4-byte words", &s.width, 16, 8192);
  options.number("--batch", "vectors that go through the model at once", &s.batch, 1, 256);
  options.number("--steps", "times all layers are streamed", &s.steps, 1, 100000);
  options.number("--warmup", "steps before the clock starts", &s.warmup, 0, 100000);
  options.number("--rewrite", "percent of copies before which the host changes the weights",
                 &s.rewrite_percent, 0, 100);
  options.number("--seed", "of weights, order and changes", &s.seed, 0, UINT64_MAX);
  options.text("--order", "in which layers are used: sequential, random", &s.order,
               "sequential|random");
  options.text("--lockstep", "wait for each layer before the next is asked for: on, off",
               &s.lockstep, "on|off");
  options.text("--json", "write the figures to a file ('-': stdout)", &s.json);
  options.parse(argc, argv);
  return s;
}

// What the host decides: the order of layers and the changes to weights. Two plans of one seed are
// the same, so the check replays what the device was given.
class Plan {
 public:
  explicit Plan(const Settings& settings)
      : settings_(settings), random_(settings.seed ^ 0x706c616e), order_(settings.layers) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  // Layer to use at a turn. Call with turns 0, 1, 2, ... in order.
  size_t layer_of(size_t turn) {
    const size_t at = turn % settings_.layers;
    if (at == 0 && settings_.order == "random") {
      for (size_t i = order_.size() - 1; i > 0; --i) {
        std::swap(order_[i], order_[random_.below(i + 1)]);
      }
    }
    return order_[at];
  }

  bool rewrites() { return random_.below(100) < settings_.rewrite_percent; }

  void rewrite(uint32_t* layer) {
    for (int i = 0; i < 64; ++i) {
      layer[random_.below(settings_.layer_words())] = static_cast<uint32_t>(random_.next());
    }
  }

 private:
  const Settings& settings_;
  Random random_;
  std::vector<size_t> order_;
};

void fill_weights(const Settings& settings, uint32_t* weights) {
  Random random(settings.seed);
  const size_t count = settings.layers * settings.layer_words();
  for (size_t i = 0; i < count; ++i) weights[i] = static_cast<uint32_t>(random.next());
}

std::vector<uint32_t> first_input(const Settings& settings) {
  Random random(settings.seed + 1);
  std::vector<uint32_t> input(settings.batch * settings.width);
  for (uint32_t& word : input) word = static_cast<uint32_t>(random.next());
  return input;
}

class Device {
 public:
  Device(const Settings& settings, const gpu::PinnedBuffer<uint32_t>& weights)
      : settings_(settings), weights_(weights), plan_(settings) {
    for (Slot& slot : slots_) {
      slot.memory = gpu::DeviceBuffer<uint32_t>(settings.layer_words());
      slot.loaded = gpu::make_event();
      slot.used = gpu::make_event();
    }
    for (auto& vector : vectors_) {
      vector = gpu::DeviceBuffer<uint32_t>(settings.batch * settings.width);
    }
  }

  ~Device() {
    for (Slot& slot : slots_) {
      gpu::destroy(slot.loaded);
      gpu::destroy(slot.used);
    }
    gpu::destroy(copies_);
    gpu::destroy(compute_);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Device seconds without the warm-up; the result of step s goes to results[s].
  double run(const std::vector<uint32_t>& input, const gpu::PinnedBuffer<uint32_t>& results) {
    gpu::copy_in(vectors_[0].data(), input.data(), vectors_[0].bytes(), compute_);
    gpu::synchronize(compute_);
    run_steps(0, settings_.warmup, results);
    gpu::Stopwatch watch(compute_);
    run_steps(settings_.warmup, settings_.all_steps(), results);
    return watch.stop(compute_);
  }

 private:
  struct Slot {
    gpu::DeviceBuffer<uint32_t> memory;
    gpu::Event loaded;
    gpu::Event used;
  };

  // Steps [first, end); before and behind them nothing is under way.
  void run_steps(size_t first, size_t end, const gpu::PinnedBuffer<uint32_t>& results) {
    const size_t turns = end * settings_.layers;
    const bool lockstep = settings_.lockstep == "on";
    if (first < end && !lockstep) load(first * settings_.layers);
    for (size_t turn = first * settings_.layers; turn < turns; ++turn) {
      if (lockstep) {
        gpu::synchronize(compute_);
        load(turn);
      } else if (turn + 1 < turns) {
        load(turn + 1);
      }
      compute(turn);
      if ((turn + 1) % settings_.layers != 0) continue;
      uint32_t* const result = results.data() + turn / settings_.layers * vectors_[0].size();
      gpu::copy_out(result, vectors_[0].data(), vectors_[0].bytes(), compute_);
      gpu::synchronize(compute_);
    }
  }

  void load(size_t turn) {
    Slot& slot = slots_[turn % 2];
    uint32_t* const layer = weights_.data() + plan_.layer_of(turn) * settings_.layer_words();
    if (plan_.rewrites()) {
      gpu::synchronize(copies_);  // an earlier copy may still read them
      plan_.rewrite(layer);
    }
    if (turn >= 2) gpu::wait(copies_, slot.used);
    for (size_t m = 0; m < settings_.matrices; ++m) {
      const size_t offset = m * settings_.matrix_words();
      gpu::copy_in(slot.memory.data() + offset, layer + offset,
                   settings_.matrix_words() * sizeof(uint32_t), copies_);
    }
    gpu::record(slot.loaded, copies_);
  }

  // The vectors return to vectors_[0] after each layer's matrices.
  void compute(size_t turn) {
    Slot& slot = slots_[turn % 2];
    gpu::wait(compute_, slot.loaded);
    const auto width = static_cast<uint32_t>(settings_.width);
    const auto batch = static_cast<uint32_t>(settings_.batch);
    for (size_t m = 0; m < settings_.matrices; ++m) {
      const uint32_t* const matrix = slot.memory.data() + m * settings_.matrix_words();
      gpu::launch(MatVec{matrix, vectors_[0].data(), vectors_[1].data(), width, width, batch},
                  compute_);
      std::swap(vectors_[0], vectors_[1]);
    }
    gpu::record(slot.used, compute_);
  }

  const Settings& settings_;
  const gpu::PinnedBuffer<uint32_t>& weights_;
  Plan plan_;
  gpu::Stream copies_ = gpu::make_stream();
  gpu::Stream compute_ = gpu::make_stream();
  Slot slots_[2];
  gpu::DeviceBuffer<uint32_t> vectors_[2];
};

// The same on the host, from weights made anew.
void check(const Settings& settings, std::vector<uint32_t> x, const uint32_t* results) {
  std::vector<uint32_t> weights(settings.layers * settings.layer_words());
  fill_weights(settings, weights.data());
  Plan plan(settings);
  std::vector<uint32_t> y(x.size());
  const size_t width = settings.width;
  for (size_t turn = 0; turn < settings.all_steps() * settings.layers; ++turn) {
    uint32_t* const layer = weights.data() + plan.layer_of(turn) * settings.layer_words();
    if (plan.rewrites()) plan.rewrite(layer);
    for (size_t m = 0; m < settings.matrices; ++m) {
      const uint32_t* const matrix = layer + m * settings.matrix_words();
      for (size_t row = 0; row < width; ++row) {
        for (size_t b = 0; b < settings.batch; ++b) {
          uint32_t sum = 0;
          for (size_t c = 0; c < width; ++c) sum += matrix[row * width + c] ^ x[b * width + c];
          y[b * width + row] = mix(sum, static_cast<uint32_t>(row));
        }
      }
      std::swap(x, y);
    }
    if ((turn + 1) % settings.layers != 0) continue;
    const size_t step = turn / settings.layers;
    if (std::memcmp(results + step * x.size(), x.data(), x.size() * sizeof(uint32_t)) != 0) {
      fail("step %zu: the device's result is wrong", step);
    }
  }
}

void run(const Settings& settings) {
  gpu::init();
  gpu::PinnedBuffer<uint32_t> weights(settings.layers * settings.layer_words());
  fill_weights(settings, weights.data());
  const std::vector<uint32_t> input = first_input(settings);
  gpu::PinnedBuffer<uint32_t> results(settings.all_steps() * input.size());
  double seconds = 0;
  {
    Device device(settings, weights);
    seconds = device.run(input, results);
  }
  check(settings, input, results.data());

  Hash hash;
  for (size_t i = 0; i < results.size(); ++i) hash.add(results[i]);
  Report report;
  report.add("example", "layer_swap");
  report.add("api", gpu::api_name());
  report.add("steps", settings.steps);
  report.add("bytes_in", settings.bytes_in());
  report.add("total_s", seconds);
  report.add("gb_per_s", static_cast<double>(settings.bytes_in()) / seconds / 1e9);
  report.add("tokens_per_s", static_cast<double>(settings.steps * settings.batch) / seconds);
  report.add("hash", hash.text());
  report.publish(settings.json);
}

}  // namespace

}  // namespace examples

int main(int argc, char** argv) { examples::run(examples::parse(argc, argv)); }
