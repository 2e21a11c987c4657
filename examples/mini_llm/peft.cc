// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// PEFT's pattern: low-rank adapters on the query and value projections are trained by gradient
// descent, the frozen weights are offloaded: each step streams the layers forwards for the loss and
// backwards for the gradients. Adapters and activations stay on the device.

#include <bit>
#include <cmath>
#include <numeric>

#include "mini_llm/batch.h"
#include "mini_llm/device_model.h"
#include "mini_llm/reference.h"
#include "mini_llm/schedule.h"
#include "support/fail.h"
#include "support/random.h"

namespace examples {

namespace {

constexpr uint32_t kRank = 16;
constexpr float kScale = 2.0f;  // alpha / rank
constexpr float kRate = 0.02f;

// Where the adapters of a layer lie in an array of all: as AdapterValues says.
class AdapterLayout {
 public:
  explicit AdapterLayout(const Shape& shape)
      : one_(size_t{kRank} * shape.hidden), all_(4 * one_ * shape.layers) {}

  size_t all() const { return all_; }
  size_t query_down(size_t layer) const { return 4 * one_ * layer; }
  size_t query_up(size_t layer) const { return query_down(layer) + one_; }
  size_t value_down(size_t layer) const { return query_up(layer) + one_; }
  size_t value_up(size_t layer) const { return value_down(layer) + one_; }

 private:
  size_t one_;
  size_t all_;
};

// What a layer's forward pass leaves for its backward pass.
struct Saved {
  Saved(const Shape& shape, uint32_t rows)
      : activations(shape, rows),
        in(activations.x.size()),
        normed(activations.x.size()),
        middle(activations.x.size()),
        query_middle(size_t{rows} * kRank),
        value_middle(size_t{rows} * kRank) {}

  Activations activations;
  gpu::DeviceBuffer<float> in;      // the residual stream before attention,
  gpu::DeviceBuffer<float> normed;  // what attention saw of it,
  gpu::DeviceBuffer<float> middle;  // and the residual stream before the MLP
  gpu::DeviceBuffer<float> query_middle, value_middle;
};

// Gradients of one layer's tensors, reused from layer to layer; `x` is handed down.
struct Gradients {
  Gradients(const Shape& shape, uint32_t rows)
      : activations(shape, rows),
        query_middle(size_t{rows} * kRank),
        value_middle(size_t{rows} * kRank) {}

  Activations activations;
  gpu::DeviceBuffer<float> query_middle, value_middle;
};

class Trainer {
 public:
  Trainer(const Settings& settings, const Model& model, size_t warmup, size_t steps)
      : shape_(model.shape()),
        warmup_(warmup),
        steps_(steps),
        count_(static_cast<uint32_t>(2 * settings.prompt)),
        layout_(shape_),
        model_(model, compute_),
        layers_(model, compute_),
        kv_(shape_, KvCache::blocks_of(count_)),
        batch_(shape_, count_, KvCache::blocks_of(count_)),
        d_(shape_, count_),
        adapters_(layout_.all()),
        gradients_(layout_.all()),
        logits_(size_t{count_} * shape_.vocabulary),
        losses_(count_),
        targets_(count_),
        host_losses_(count_),
        text_(make_prompt(settings, shape_, 0, count_ + 1)),
        first_adapters_(layout_.all()) {
    for (uint32_t layer = 0; layer < shape_.layers; ++layer) saved_.emplace_back(shape_, count_);
    // The adapters begin small and not zero: then the first gradients reach all of them.
    Random random(settings.seed ^ 0x6c6f7261);
    for (float& value : first_adapters_) value = random.real(0.05f);
    gpu::copy_in(adapters_.data(), first_adapters_.data(), adapters_.bytes(), compute_);
    gpu::copy_in(targets_.data(), text_.data() + 1, targets_.bytes(), compute_);
  }
  ~Trainer() { gpu::destroy(compute_); }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains on one sequence; the mean loss of every step. Returns device seconds without the
  // warm-up.
  double run(std::vector<float>& losses) {
    std::vector<int32_t> blocks(KvCache::blocks_of(count_));
    std::iota(blocks.begin(), blocks.end(), 0);
    for (size_t i = 0; i < count_; ++i) batch_.add(text_[i], i, blocks);
    gpu::synchronize(compute_);
    train(warmup_, losses);
    gpu::synchronize(compute_);
    warmup_bytes_ = layers_.bytes_sent();
    gpu::Stopwatch watch(compute_);
    train(steps_, losses);
    return watch.stop(compute_);
  }

  uint64_t bytes_in() const { return layers_.bytes_sent() - warmup_bytes_; }
  std::vector<int32_t> tokens() const { return {text_.begin(), text_.end() - 1}; }
  std::vector<int32_t> targets() const { return {text_.begin() + 1, text_.end()}; }
  const std::vector<float>& first_adapters() const { return first_adapters_; }
  std::vector<float> fetch_adapters() const {
    std::vector<float> values(adapters_.size());
    gpu::copy_out(values.data(), adapters_.data(), adapters_.bytes(), compute_);
    gpu::synchronize(compute_);
    return values;
  }

 private:
  // The next `steps` steps; no layer of a later one is loaded.
  void train(size_t steps, std::vector<float>& losses) {
    turns_end_ = turn_ + steps * turns_per_step();
    if (steps > 0) layers_.load(turn_, 0);
    for (size_t step = 0; step < steps; ++step) {
      const Rows rows = batch_.send(compute_);
      forward(rows);
      losses.push_back(fetch_loss());
      backward(rows);
      gpu::launch(
          SgdStep{adapters_.data(), gradients_.data(), static_cast<uint32_t>(layout_.all()), kRate},
          compute_);
    }
  }

  size_t turns_per_step() const { return 2 * size_t{shape_.layers}; }
  size_t x_bytes() const { return size_t{count_} * shape_.hidden * sizeof(float); }

  // The next turn's weights; the one after it begins to arrive. A step goes up and down again.
  LayerView next_weights() {
    const size_t period = turns_per_step();
    if (turn_ + 1 < turns_end_) {
      const size_t next = (turn_ + 1) % period;
      layers_.load(turn_ + 1, next < shape_.layers ? next : period - 1 - next);
    }
    return layers_.take(turn_);
  }
  void weights_used() { layers_.give_back(turn_++); }

  LayerAdapters adapters(uint32_t layer) const {
    const float* const base = adapters_.data();
    const Saved& saved = saved_[layer];
    return {kRank,
            kScale,
            base + layout_.query_down(layer),
            base + layout_.query_up(layer),
            base + layout_.value_down(layer),
            base + layout_.value_up(layer),
            saved.query_middle.data(),
            saved.value_middle.data()};
  }

  void forward(const Rows& rows) {
    model_.embed(saved_[0].activations, rows);
    for (uint32_t layer = 0; layer < shape_.layers; ++layer) {
      const Saved& saved = saved_[layer];
      const Activations& a = saved.activations;
      if (layer > 0) {
        const Activations& before = saved_[layer - 1].activations;
        gpu::copy_within(a.x.data(), before.x.data(), x_bytes(), compute_);
      }
      gpu::copy_within(saved.in.data(), a.x.data(), x_bytes(), compute_);
      const LayerView weights = next_weights();
      const LayerAdapters low_rank = adapters(layer);
      model_.attend(a, rows, layer, weights, batch_.kv(kv_, layer), &low_rank);
      gpu::copy_within(saved.normed.data(), a.normed.data(), x_bytes(), compute_);
      gpu::copy_within(saved.middle.data(), a.x.data(), x_bytes(), compute_);
      model_.mlp(a, rows, layer, weights);
      weights_used();
    }
    model_.logits(saved_.back().activations, rows, logits_.data());
    gpu::launch(
        SoftmaxLoss{logits_.data(), targets_.data(), losses_.data(), count_, shape_.vocabulary},
        compute_);
  }

  float fetch_loss() {
    gpu::copy_out(host_losses_.data(), losses_.data(), losses_.bytes(), compute_);
    gpu::synchronize(compute_);
    float sum = 0;
    for (size_t i = 0; i < host_losses_.size(); ++i) sum += host_losses_[i];
    return sum / static_cast<float>(count_);
  }

  void backward(const Rows& rows) {
    const Activations& d = d_.activations;
    const Activations& last = saved_.back().activations;
    back_multiply(logits_, model_.embedding(), d.normed, shape_.hidden, shape_.vocabulary);
    gpu::fill_zero(d.x.data(), x_bytes(), compute_);
    back_norm(last.x, 2 * size_t{shape_.layers});
    for (uint32_t layer = shape_.layers; layer-- > 0;) {
      const LayerView weights = next_weights();
      back_mlp(layer, weights);
      back_attention(layer, weights, rows.count);
      weights_used();
    }
  }

  void back_mlp(uint32_t layer, const LayerView& weights) {
    const Activations& a = saved_[layer].activations;
    const Activations& d = d_.activations;
    const uint32_t hidden = shape_.hidden;
    const uint32_t inner = shape_.inner();
    back_multiply(d.x, weights[Matrix::down], d.inner, inner, hidden);
    gpu::launch(SiluMulBackward{a.gate.data(), a.up.data(), d.inner.data(), d.gate.data(),
                                d.up.data(), count_ * inner},
                compute_);
    back_multiply(d.gate, weights[Matrix::gate], d.normed, hidden, inner);
    back_multiply(d.up, weights[Matrix::up], d.normed, hidden, inner, 1, true);
    back_norm(saved_[layer].middle, 2 * layer + 1);
  }

  void back_attention(uint32_t layer, const LayerView& weights, uint32_t rows) {
    const Saved& saved = saved_[layer];
    const Activations& a = saved.activations;
    const Activations& d = d_.activations;
    const uint32_t hidden = shape_.hidden;
    back_multiply(d.x, weights[Matrix::output], d.attended, hidden, hidden);
    gpu::launch(AttentionBackward{a.query.data(), a.key.data(), a.value.data(), a.attended.data(),
                                  d.attended.data(), d.query.data(), d.key.data(), d.value.data(),
                                  rows, hidden, shape_.heads()},
                compute_);
    back_multiply(d.query, weights[Matrix::query], d.normed, hidden, hidden);
    back_multiply(d.key, weights[Matrix::key], d.normed, hidden, hidden, 1, true);
    back_multiply(d.value, weights[Matrix::value], d.normed, hidden, hidden, 1, true);
    back_adapter(d.query, saved, saved.query_middle, d_.query_middle, layout_.query_down(layer),
                 layout_.query_up(layer));
    back_adapter(d.value, saved, saved.value_middle, d_.value_middle, layout_.value_down(layer),
                 layout_.value_up(layer));
    back_norm(saved.in, 2 * layer);
  }

  // From the gradient of an adapted projection: gradients of its adapter, and its share of the
  // input's.
  void back_adapter(const gpu::DeviceBuffer<float>& d_out, const Saved& saved,
                    const gpu::DeviceBuffer<float>& middle,
                    const gpu::DeviceBuffer<float>& d_middle, size_t down, size_t up) {
    const uint32_t hidden = shape_.hidden;
    gpu::launch(GemmOuter{d_out.data(), middle.data(), gradients_.data() + up, count_, hidden,
                          kRank, kScale},
                compute_);
    back_multiply(d_out, adapters_.data() + up, d_middle, kRank, hidden, kScale);
    gpu::launch(GemmOuter{d_middle.data(), saved.normed.data(), gradients_.data() + down, count_,
                          kRank, hidden, 1},
                compute_);
    back_multiply(d_middle, adapters_.data() + down, d_.activations.normed, hidden, kRank, 1, true);
  }

  void back_multiply(const gpu::DeviceBuffer<float>& d_out, const float* weights,
                     const gpu::DeviceBuffer<float>& d_in, uint32_t inputs, uint32_t outputs,
                     float scale = 1, bool accumulate = false) {
    gpu::launch(GemmTransposed{d_out.data(), weights, d_in.data(), count_, inputs, outputs, scale,
                               accumulate},
                compute_);
  }

  // d.x += the gradient of a norm's input, from d.normed.
  void back_norm(const gpu::DeviceBuffer<float>& in, size_t gain) {
    const Activations& d = d_.activations;
    gpu::launch(RmsNormBackward{in.data(), model_.gain(gain), d.normed.data(), d.x.data(), count_,
                                shape_.hidden},
                compute_);
  }

  const Shape shape_;
  const size_t warmup_;
  const size_t steps_;
  const uint32_t count_;  // tokens of the sequence
  const AdapterLayout layout_;
  gpu::Stream compute_ = gpu::make_stream();
  DeviceModel model_;
  LayerStream layers_;
  KvCache kv_;
  Batch batch_;
  std::vector<Saved> saved_;
  Gradients d_;
  gpu::DeviceBuffer<float> adapters_, gradients_, logits_, losses_;
  gpu::DeviceBuffer<int32_t> targets_;
  gpu::PinnedBuffer<float> host_losses_;
  const std::vector<int32_t> text_;
  std::vector<float> first_adapters_;
  size_t turn_ = 0;
  size_t turns_end_ = 0;
  uint64_t warmup_bytes_ = 0;
};

// The first loss must be the host's. And the first step must go down the loss's slope: along
// change = -rate * gradient the loss changes by -|change|^2 / rate, for the true gradient only.
void check_first_step(const Settings& settings, const Model& model, float loss) {
  Trainer trainer(settings, model, 0, 1);
  std::vector<float> losses;
  trainer.run(losses);
  if (losses[0] != loss) fail("the first loss is %g, then %g", double{loss}, double{losses[0]});
  const std::vector<float>& start = trainer.first_adapters();
  const std::vector<float> end = trainer.fetch_adapters();
  const auto loss_at = [&](double factor) {
    AdapterValues moved{kRank, kScale, std::vector<double>(start.begin(), start.end())};
    for (size_t i = 0; i < start.size(); ++i) moved.values[i] += factor * (end[i] - start[i]);
    return reference_loss(model, trainer.tokens(), trainer.targets(), moved);
  };
  const double before = loss_at(-0.05);
  const double after = loss_at(0.05);
  const double middle = (before + after) / 2;
  if (std::fabs(loss - middle) > 1e-3 * middle)
    fail("the loss is %g, not %g", double{loss}, middle);
  double squares = 0;
  for (size_t i = 0; i < start.size(); ++i) squares += std::pow(double{end[i]} - start[i], 2);
  const double slope = (after - before) / 0.1;
  if (std::fabs(slope + squares / kRate) > 0.02 * squares / kRate) {
    fail("the gradient is wrong: the loss falls by %g, not by %g", -slope, squares / kRate);
  }
}

}  // namespace

void run_peft(const Settings& settings, const Model& model, Report& report) {
  const uint64_t steps = settings.steps_or(5);
  std::vector<float> losses;
  uint64_t bytes_in = 0;
  double seconds = 0;
  {
    Trainer trainer(settings, model, settings.warmup, steps);
    seconds = trainer.run(losses);
    bytes_in = trainer.bytes_in();
  }
  if (settings.verify == "on") check_first_step(settings, model, losses[0]);
  Hash hash;
  for (const float loss : losses) hash.add(std::bit_cast<uint32_t>(loss));
  report.add("steps", steps);
  report.add("tokens", 2 * settings.prompt * steps);
  report.add("bytes_in", bytes_in);
  report.add("first_loss", double{losses.front()});
  report.add("last_loss", double{losses.back()});
  report.add("total_s", seconds);
  report.add("steps_per_s", static_cast<double>(steps) / seconds);
  report.add("tokens_per_s", static_cast<double>(2 * settings.prompt * steps) / seconds);
  report.add("hash", hash.text());
}

}  // namespace examples
