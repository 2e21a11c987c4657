// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// vLLM's pattern: weights stay on the device; requests join and leave the batch at every step; a
// request's KV blocks are taken from a pool as it grows. When the pool is empty the youngest
// running request is preempted and its blocks are swapped out; the last one out comes back first.
// What is scheduled depends on counts alone, never on time.
//
// The layers' kernels of a step are one CUDA graph, captured at the start for every number of rows
// that steps are padded to, as the engine does; what goes in, the choice of tokens and what comes
// out is outside.

#include <algorithm>
#include <utility>

#include "mini_llm/batch.h"
#include "mini_llm/device_model.h"
#include "mini_llm/reference.h"
#include "mini_llm/schedule.h"
#include "mini_llm/step_graphs.h"
#include "support/fail.h"
#include "support/random.h"

namespace examples {

namespace {

struct Request {
  Generation generation;
  size_t choices_end = 0;
  size_t cached = 0;  // tokens whose keys and values are in `blocks`
  std::vector<int32_t> blocks;
  bool was_preempted = false;

  size_t length() const { return generation.prompt.size() + generation.choices.size(); }
  bool done() const { return generation.choices.size() == choices_end; }
};

class Server {
 public:
  Server(const Settings& settings, const Model& model)
      : shape_(model.shape()),
        requests_(make_requests(settings, model.shape())),
        blocks_max_(most_blocks(requests_)),
        model_(model, compute_),
        weights_(model.matrix_bytes() / sizeof(float)),
        activations_(shape_, rows_max(requests_)),
        kv_(shape_, settings.pool_blocks),
        batch_(shape_, rows_max(requests_), blocks_max_),
        graphs_(compute_),
        saved_(requests_.size() * blocks_max_ * kv_.block_floats()) {
    if (settings.pool_blocks < blocks_max_) {
      fail_usage("--pool-blocks: one request alone needs %zu", blocks_max_);
    }
    gpu::copy_in(weights_.data(), model.layer(0)[Matrix::query], weights_.bytes(), compute_);
    for (size_t i = settings.pool_blocks; i > 0; --i) free_.push_back(static_cast<int32_t>(i - 1));
    for (size_t i = requests_.size(); i > 0; --i) waiting_.push_back(i - 1);
    if (settings.graphs == "on") {
      graphs_.capture(rows_max(requests_), [this](size_t rows) {
        run_layers(batch_.rows(rows, blocks_max_ * KvCache::kBlockTokens));
      });
    }
  }
  ~Server() {
    gpu::destroy(event_);
    gpu::destroy(swap_);
    gpu::destroy(compute_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // What is measured.
  struct Figures {
    double seconds = 0;
    uint64_t steps = 0;
    uint64_t tokens = 0;
    uint64_t preemptions = 0;
    uint64_t swapped_bytes = 0;
  };

  Figures run(uint64_t warmup) {
    gpu::synchronize(compute_);
    while (figures_.steps < warmup && !finished()) serve_step();
    if (finished()) {
      fail_usage("--warmup: there are %llu steps in all",
                 static_cast<unsigned long long>(figures_.steps));
    }
    figures_ = {};
    gpu::Stopwatch watch(compute_);
    while (!finished()) serve_step();
    figures_.seconds = watch.stop(compute_);
    return figures_;
  }

  const std::vector<Request>& requests() const { return requests_; }

 private:
  bool finished() const { return waiting_.empty() && running_.empty() && preempted_.empty(); }

  void serve_step() {
    resume();
    admit();
    make_room();
    order(swap_, compute_);
    step();
    retire();
  }

  static std::vector<Request> make_requests(const Settings& settings, const Shape& shape) {
    std::vector<Request> requests(settings.requests_or(32));
    Random random(settings.seed ^ 0x76c6c6d);
    const uint64_t choices = settings.steps_or(48);
    for (size_t i = 0; i < requests.size(); ++i) {
      const size_t prompt = settings.prompt + random.below(settings.prompt + 1);
      requests[i].generation.prompt = make_prompt(settings, shape, i, prompt);
      requests[i].choices_end = choices - random.below(choices / 2 + 1);
    }
    return requests;
  }
  static size_t most_blocks(const std::vector<Request>& requests) {
    size_t most = 0;
    for (const Request& request : requests) {
      most = std::max(most, KvCache::blocks_of(request.length() + request.choices_end));
    }
    return most;
  }
  static uint32_t rows_max(const std::vector<Request>& requests) {
    size_t rows = 0;
    for (const Request& request : requests) rows += request.generation.prompt.size();
    return static_cast<uint32_t>(StepGraphs::padded(rows));
  }

  void order(gpu::Stream from, gpu::Stream to) {
    gpu::record(event_, from);
    gpu::wait(to, event_);
  }
  void take_blocks(Request& request, size_t wanted) {
    while (request.blocks.size() < wanted) {
      request.blocks.push_back(free_.back());
      free_.pop_back();
    }
  }
  void give_blocks(Request& request) {
    free_.insert(free_.end(), request.blocks.rbegin(), request.blocks.rend());
    request.blocks.clear();
  }
  float* saved(size_t id, size_t index) const {
    return saved_.data() + (id * blocks_max_ + index) * kv_.block_floats();
  }

  void resume() {
    while (!preempted_.empty()) {
      const size_t id = preempted_.back();
      Request& request = requests_[id];
      if (free_.size() < KvCache::blocks_of(request.length())) return;
      preempted_.pop_back();
      take_blocks(request, KvCache::blocks_of(request.cached));
      for (size_t i = 0; i < request.blocks.size(); ++i) {
        gpu::copy_in(kv_.block(request.blocks[i]), saved(id, i), kv_.block_bytes(), swap_);
        figures_.swapped_bytes += kv_.block_bytes();
      }
      running_.push_back(id);
    }
  }

  void admit() {
    while (preempted_.empty() && !waiting_.empty() &&
           free_.size() >= KvCache::blocks_of(requests_[waiting_.back()].length())) {
      take_blocks(requests_[waiting_.back()],
                  KvCache::blocks_of(requests_[waiting_.back()].length()));
      running_.push_back(waiting_.back());
      waiting_.pop_back();
    }
  }

  // Every running request gets blocks for its next token, oldest first; the youngest make room.
  void make_room() {
    for (size_t i = 0; i < running_.size(); ++i) {
      Request& request = requests_[running_[i]];
      const size_t wanted = KvCache::blocks_of(request.length());
      while (request.blocks.size() < wanted && i < running_.size()) {
        if (free_.empty()) {
          preempt_youngest();
        } else {
          take_blocks(request, request.blocks.size() + 1);
        }
      }
    }
  }

  void preempt_youngest() {
    const size_t id = running_.back();
    running_.pop_back();
    Request& request = requests_[id];
    for (size_t i = 0; i < KvCache::blocks_of(request.cached); ++i) {
      gpu::copy_out(saved(id, i), kv_.block(request.blocks[i]), kv_.block_bytes(), swap_);
      figures_.swapped_bytes += kv_.block_bytes();
    }
    request.was_preempted = true;
    give_blocks(request);
    preempted_.push_back(id);
    ++figures_.preemptions;
  }

  // Rows are what each request has not in its cache yet: a prompt, or the newest token.
  void step() {
    batch_.clear();
    std::vector<size_t> newest_rows;
    for (const size_t id : running_) {
      Request& request = requests_[id];
      size_t row = 0;
      for (; request.cached < request.length(); ++request.cached) {
        row =
            batch_.add(request.generation.token_at(request.cached), request.cached, request.blocks);
      }
      newest_rows.push_back(row);
    }
    Rows rows = batch_.rows(batch_.count(), 0);
    if (const gpu::Graph graph = graphs_.find(batch_.count())) {
      batch_.pad(StepGraphs::padded(batch_.count()));
      batch_.send(compute_);
      gpu::launch(graph, compute_);
    } else {
      rows = batch_.send(compute_);
      run_layers(rows);
    }
    batch_.choose(model_, activations_, rows, compute_);
    for (size_t i = 0; i < running_.size(); ++i) {
      requests_[running_[i]].generation.choices.push_back(batch_.choice(newest_rows[i]));
    }
    ++figures_.steps;
    figures_.tokens += running_.size();
  }

  void run_layers(const Rows& rows) {
    model_.embed(activations_, rows);
    for (uint32_t layer = 0; layer < shape_.layers; ++layer) {
      const LayerView weights(shape_, weights_.data() + layer * layer_floats(shape_));
      model_.attend(activations_, rows, layer, weights, batch_.kv(kv_, layer));
      model_.mlp(activations_, rows, layer, weights);
    }
  }

  void retire() {
    std::erase_if(running_, [this](size_t id) {
      if (!requests_[id].done()) return false;
      give_blocks(requests_[id]);
      return true;
    });
  }

  const Shape shape_;
  std::vector<Request> requests_;
  const size_t blocks_max_;  // of one request
  gpu::Stream compute_ = gpu::make_stream();
  gpu::Stream swap_ = gpu::make_stream();
  gpu::Event event_ = gpu::make_event();
  DeviceModel model_;
  gpu::DeviceBuffer<float> weights_;
  Activations activations_;
  KvCache kv_;
  Batch batch_;
  StepGraphs graphs_;
  gpu::PinnedBuffer<float> saved_;
  std::vector<int32_t> free_;
  std::vector<size_t> waiting_;    // next one at the back
  std::vector<size_t> running_;    // oldest first
  std::vector<size_t> preempted_;  // a stack
  Figures figures_;
};

// The shortest request that was preempted, if there is one: its keys and values have travelled.
const Request& most_telling(const std::vector<Request>& requests) {
  return *std::min_element(
      requests.begin(), requests.end(), [](const Request& a, const Request& b) {
        return std::pair(!a.was_preempted, a.length()) < std::pair(!b.was_preempted, b.length());
      });
}

}  // namespace

void run_vllm(const Settings& settings, const Model& model, Report& report) {
  Server server(settings, model);
  const Server::Figures figures = server.run(settings.warmup);
  if (settings.verify == "on") {
    const Generation& generation = most_telling(server.requests()).generation;
    check_generation(model, generation, generation.choices.size());
  }
  std::vector<Generation> generations;
  for (const Request& request : server.requests()) generations.push_back(request.generation);
  report.add("steps", figures.steps);
  report.add("tokens", figures.tokens);
  report.add("preemptions", figures.preemptions);
  report.add("bytes_swapped", figures.swapped_bytes);
  report.add("total_s", figures.seconds);
  report.add("tokens_per_s", static_cast<double>(figures.tokens) / figures.seconds);
  report.add("hash", hash_of(generations));
}

}  // namespace examples
