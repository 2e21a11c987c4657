// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Continuous batching with paged KV, as vLLM schedules it:
//
//   1. requests that were swapped out come first; only if there are none, new ones are admitted
//      while there are blocks, and their prompts are a step of their own;
//   2. else every running request gets room for its next token; if there is none, the one that came
//      last is swapped out, block by block, and its blocks are free;
//   3. else those swapped out come back, the one that came first before the others;
//   4. the device computes the step and the sampled tokens are read.
//
// The answers to one request share the blocks of its prompt.

#include <cmath>
#include <map>
#include <utility>

#include "base/try.h"
#include "workload/serving/engine.h"
#include "workload/serving/requests.h"

namespace sealane::workload {
namespace {

constexpr uint64_t kBlockTokens = 16;
constexpr uint64_t kRunningMax = 256;  // sequences
constexpr double kGpuShare = 0.9;      // of GPU memory that vLLM takes
constexpr uint64_t kWorkspace = 2'000'000'000;
constexpr double kWatermark = 0.01;        // of the blocks, kept free when a request is let in
constexpr uint64_t kHostBlocksFactor = 4;  // host blocks for each block on the device
constexpr double kWarmUpShare = 0.1;       // of the simulated time

uint64_t watermark(uint64_t blocks) {
  return static_cast<uint64_t>(kWatermark * static_cast<double>(blocks));
}

uint64_t blocks_for(uint64_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

// Runs of blocks in host memory, first fit.
class HostPool {
 public:
  explicit HostPool(uint64_t blocks) { free_[0] = blocks; }

  std::optional<uint64_t> take(uint64_t blocks) {
    for (auto run = free_.begin(); run != free_.end(); ++run) {
      if (run->second < blocks) continue;
      const auto [first, length] = *run;
      free_.erase(run);
      if (length > blocks) free_[first + blocks] = length - blocks;
      return first;
    }
    return std::nullopt;
  }

  void give_back(uint64_t first, uint64_t blocks) {
    auto [run, added] = free_.emplace(first, blocks);
    if (const auto next = std::next(run); next != free_.end() && first + blocks == next->first) {
      run->second += next->second;
      free_.erase(next);
    }
    if (run == free_.begin()) return;
    if (const auto before = std::prev(run); before->first + before->second == first) {
      before->second += run->second;
      free_.erase(run);
    }
  }

 private:
  std::map<uint64_t, uint64_t> free_;  // first block to number of blocks
};

struct VllmShape {
  double rate;
  Duration time;
  Lengths lengths;
  uint64_t samples;
  SwapUnit unit;
  Duration host_time;
  uint64_t seed;
  uint64_t blocks;
};

class Vllm final : public Engine {
 public:
  Vllm(const Model& model, const Roofline& gpu, const VllmShape& shape)
      : model_(model),
        gpu_(gpu),
        shape_(shape),
        requests_(shape.lengths, shape.rate, shape.seed),
        free_blocks_(shape.blocks),
        host_pool_(kHostBlocksFactor * shape.blocks) {}

 private:
  void set_up() override {
    const uint64_t bytes = kHostBlocksFactor * shape_.blocks * block_bytes();
    swap_space_ = host_memory(bytes);
    swap_on_device_ = device_memory(bytes);
    const uint64_t control = ControlCopies::kCopies * ControlCopies::kRegionBytes;
    const Range host = host_memory(control);
    control_ = ControlCopies(host, device_memory(control));
    tokens_ = host_memory(8 * kRunningMax);
    tokens_on_device_ = device_memory(8 * kRunningMax);
  }

  bool step(Instant now) override {
    finish_step(now);
    if (now.time_since_epoch() >= shape_.time) {
      achieved_.time = now - counting_from_;
      return false;
    }
    think(shape_.host_time);
    if (swapped_.empty() && admit(now)) return true;
    if (running_.empty() && swapped_.empty()) {
      // Nothing to do until the next request.
      think(requests_.peek(now).arrived - now);
      call(QueryStream{kCompute});
      return true;
    }
    if (!make_room()) swap_in();
    decode();
    return true;
  }

  // --- what the last step has brought

  void finish_step(Instant now) {
    const bool counts = now.time_since_epoch() >= shape_.time * kWarmUpShare;
    if (counts && counting_from_ == Instant{}) counting_from_ = now;
    if (!std::exchange(in_step_, false)) return;
    std::erase_if(running_, [&](Request& request) {
      if (counts) achieved_.units += static_cast<double>(shape_.samples);
      if (++request.generated < request.answer) return false;
      if (counts) achieved_.latencies.push_back(now - request.arrived);
      free_blocks_ += request.blocks;
      return true;
    });
  }

  // --- scheduling

  // With room for the next token of each answer.
  uint64_t needed(const Request& request) const {
    return blocks_for(request.prompt) + shape_.samples * blocks_for(request.generated + 1);
  }
  // True if there was room.
  bool give_blocks(Request& request, uint64_t keep_free) {
    const uint64_t more = needed(request) - request.blocks;
    if (more + keep_free > free_blocks_) return false;
    free_blocks_ -= more;
    request.blocks += more;
    return true;
  }

  bool admit(Instant now) {
    Batch work;
    uint64_t admitted = 0;
    while (requests_.peek(now).arrived <= now &&
           (running_.size() + 1) * shape_.samples <= kRunningMax &&
           give_blocks(requests_.peek(now), watermark(shape_.blocks))) {
      running_.push_back(requests_.take(now));
      const Batch prompt = Batch::prefill(1, running_.back().prompt);
      work.tokens += prompt.tokens;
      work.context += prompt.context;
      work.pairs += prompt.pairs;
      ++admitted;
    }
    if (admitted > 0) compute(work, admitted);
    return admitted > 0;
  }

  // True if somebody had to go. The last one goes, which may be the one that needs room.
  bool make_room() {
    bool swapped = false;
    for (size_t i = 0; i < running_.size(); ++i) {
      while (i < running_.size() && !give_blocks(running_[i], 0)) {
        swapped = true;
        swap_out();
      }
    }
    return swapped;
  }

  // --- copies

  uint64_t block_bytes() const { return kBlockTokens * model_.kv_bytes_per_token(); }

  void swap_out() {
    Request victim = running_.back();
    running_.pop_back();
    free_blocks_ += victim.blocks;
    if (const auto place = host_pool_.take(victim.blocks)) {
      victim.swapped_to = *place;
      each_piece(victim, [&](const Range& host, uint64_t device) { copy_out(kOut, host, device); });
      follow(kCompute, kOut);
      follow(kIn, kOut);
    } else {
      victim.generated = 0;  // no room on the host either: begin again
      victim.blocks = 0;
    }
    swapped_.push_back(victim);
  }

  // Those that came first were swapped out last.
  void swap_in() {
    while (!swapped_.empty()) {
      Request& next = swapped_.back();
      if (needed(next) + watermark(shape_.blocks) > free_blocks_) break;
      if (next.blocks > 0) {
        each_piece(next, [&](const Range& host, uint64_t device) { copy_in(kIn, host, device); });
        follow(kCompute, kIn);
        host_pool_.give_back(next.swapped_to, next.blocks);
        free_blocks_ -= next.blocks;
      }
      give_blocks(next, 0);
      running_.push_back(next);
      swapped_.pop_back();
    }
  }

  // The KV of a run of blocks, as the copies that move it.
  template <typename Send>
  void each_piece(const Request& request, Send send) const {
    const uint64_t pieces = shape_.unit == SwapUnit::request ? 1 : 2 * model_.layers;
    const uint64_t piece_bytes = block_bytes() / pieces;
    const uint64_t run = shape_.unit == SwapUnit::block ? 1 : request.blocks;
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      const uint64_t plane = piece * (swap_space_.bytes / pieces);
      for (uint64_t block = 0; block < request.blocks; block += run) {
        const uint64_t at = plane + (request.swapped_to + block) * piece_bytes;
        send(Range{swap_space_.address + at, run * piece_bytes}, swap_on_device_ + at);
      }
    }
  }

  void decode() {
    uint64_t context = 0;
    for (const Request& request : running_) {
      context += request.prompt + shape_.samples * request.generated;
    }
    compute(Batch::decode(running_.size() * shape_.samples, context),
            running_.size() * shape_.samples);
    in_step_ = true;
  }

  void compute(const Batch& work, uint64_t sequences) {
    control_.each(sequences, [&](const Range& host, uint64_t device) {
      call(WriteHost{host});
      copy_in(kCompute, host, device);
    });
    launch(step_time(model_, gpu_, work));
    copy_out(kCompute, {tokens_.address, 8 * std::max<uint64_t>(sequences, 1)}, tokens_on_device_);
    call(SyncStream{kCompute});
  }

  Model model_;
  Roofline gpu_;
  VllmShape shape_;
  Requests requests_;
  std::vector<Request> running_;  // by arrival
  std::vector<Request> swapped_;  // the last one came first
  uint64_t free_blocks_;
  HostPool host_pool_;
  bool in_step_ = false;  // every running request gets a token when it returns
  Range swap_space_;
  uint64_t swap_on_device_ = 0;
  ControlCopies control_;
  Range tokens_;
  uint64_t tokens_on_device_ = 0;
  Instant counting_from_{};
};

}  // namespace

Result<std::unique_ptr<Feed>> make_vllm(const Model& model, const Roofline& gpu,
                                        const ServingOptions& options) {
  const auto taken = static_cast<uint64_t>(kGpuShare * static_cast<double>(gpu.gpu_bytes));
  const uint64_t block_bytes = kBlockTokens * model.kv_bytes_per_token();
  const uint64_t samples = options.samples.value_or(2);
  const uint64_t fixed = model.bytes() + kWorkspace;
  const uint64_t blocks = taken > fixed ? (taken - fixed) / block_bytes : 0;
  // The longest request alone must fit, or the scheduler could never run it.
  const uint64_t longest = (1 + samples) * blocks_for(Requests::kTokensMax) + 1;
  if (longest + watermark(blocks) > blocks) {
    return must_fit_gpu("the model with room for the longest request",
                        std::max(gpu.gpu_bytes + 1, fixed + gpu.gpu_bytes - taken +
                                                        (longest + longest / 64) * block_bytes),
                        gpu)
        .error();
  }
  SEALANE_TRY(must_fit_host(model, kHostBlocksFactor * blocks * block_bytes, gpu));
  const VllmShape shape{
      .rate = options.rate.value_or(0),
      .time = Duration(std::llround(options.minutes.value_or(2) * 60e9)),
      .lengths = options.lengths.value_or(Lengths::sharegpt),
      .samples = samples,
      .unit = options.swap_unit.value_or(SwapUnit::layer),
      .host_time = Duration(std::llround(options.host_us.value_or(kHostUs) * 1e3)),
      .seed = options.seed,
      .blocks = blocks};
  return std::unique_ptr<Feed>(std::make_unique<Vllm>(model, gpu, shape));
}

}  // namespace sealane::workload
