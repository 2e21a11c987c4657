// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Data-parallel training on several GPUs: a process per GPU, each with its share of the samples.
// After every backward pass the gradients, which lie in GPU memory, are averaged by sealane::Comm.
// Under torchrun or mpirun it is one rank; otherwise it starts one per GPU on this machine.
//
// Ends with exit code 1 and one line if the ranks' weights differ by a bit, if they are not what
// the host computes without ranks, or if a peer or a record was tampered with.

#include <sealane/comm.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "ddp_ring/task.h"
#include "support/fail.h"
#include "support/gpu.h"
#include "support/options.h"
#include "support/report.h"

namespace examples {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Settings parse(int argc, char** argv) {
  Settings s;
  Options options("Trains a classifier on several GPUs, averaging gradients by sealed all-reduce.");
  options.number("--ranks", "processes to start; 0: one per GPU", &s.ranks, 0, 64);
  options.number("--samples", "of each rank", &s.samples, 1, 4096);
  options.number("--inputs", "of the classifier", &s.inputs, 16, 1 << 20);
  options.number("--classes", "of the classifier", &s.classes, 2, 4096);
  options.number("--steps", "training steps", &s.steps, 1, 100000);
  options.text("--algorithm", "of the all-reduce", &s.algorithm, "auto|exchange|direct|ring|hub");
  options.number("--seed", "of weights and samples", &s.seed, 0, UINT64_MAX);
  options.text("--json", "write the figures to a file ('-': stdout)", &s.json);
  options.parse(argc, argv);
  return s;
}

// Ends the program where the error is, before destructors ask a GPU that may be part of the
// problem.
template <typename Body>
void or_fail(Body body) {
  try {
    body();
  } catch (const sealane::CommError& error) {
    fail("%s", error.what());
  }
}

// What one rank has on its GPU.
class Trainer {
 public:
  Trainer(const Settings& settings, uint64_t rank)
      : settings_(settings),
        features_(settings.samples * settings.inputs),
        labels_(settings.samples),
        weights_(settings.weights()),
        gradients_(settings.weights()),
        logits_(settings.samples * settings.classes),
        losses_(settings.samples) {
    const Share share = make_share(settings, rank);
    const std::vector<float> start = initial_weights(settings);
    gpu::copy_in(features_.data(), share.features.data(), features_.bytes(), stream_);
    gpu::copy_in(labels_.data(), share.labels.data(), labels_.bytes(), stream_);
    gpu::copy_in(weights_.data(), start.data(), weights_.bytes(), stream_);
    gpu::synchronize(stream_);
  }
  ~Trainer() { gpu::destroy(stream_); }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // One training step; returns the mean loss of all ranks' samples before it.
  float step(sealane::Comm& comm) {
    const auto rows = static_cast<uint32_t>(settings_.samples);
    const auto inputs = static_cast<uint32_t>(settings_.inputs);
    const auto classes = static_cast<uint32_t>(settings_.classes);
    gpu::launch(
        Gemm{features_.data(), weights_.data(), logits_.data(), rows, inputs, classes, 1.0f, false},
        stream_);
    gpu::launch(SoftmaxLoss{logits_.data(), labels_.data(), losses_.data(), rows, classes},
                stream_);
    gpu::launch(
        GemmOuter{logits_.data(), features_.data(), gradients_.data(), rows, classes, inputs, 1.0f},
        stream_);
    gpu::synchronize(stream_);  // gradients must be complete before anybody else reads them

    const auto start = Clock::now();
    or_fail([&] {
      comm.all_reduce(gradients_.data(), gradients_.data(), gradients_.size(),
                      sealane::DataType::float32, sealane::ReduceOp::avg);
    });
    all_reduce_s_ += seconds_since(start);

    gpu::launch(SgdStep{weights_.data(), gradients_.data(),
                        static_cast<uint32_t>(settings_.weights()), kRate},
                stream_);
    return mean_loss(comm);
  }

  std::vector<float> weights() const { return fetch(weights_); }
  double all_reduce_s() const { return all_reduce_s_; }

 private:
  std::vector<float> fetch(const gpu::DeviceBuffer<float>& from) const {
    std::vector<float> values(from.size());
    gpu::copy_out(values.data(), from.data(), from.bytes(), stream_);
    gpu::synchronize(stream_);
    return values;
  }

  float mean_loss(sealane::Comm& comm) const {
    float sum = 0;
    for (const float loss : fetch(losses_)) sum += loss;
    float mean = sum / static_cast<float>(settings_.samples);
    or_fail([&] {
      comm.all_reduce(&mean, &mean, 1, sealane::DataType::float32, sealane::ReduceOp::avg);
    });
    return mean;
  }

  const Settings& settings_;
  gpu::Stream stream_ = gpu::make_stream();
  gpu::DeviceBuffer<float> features_;
  gpu::DeviceBuffer<int32_t> labels_;
  gpu::DeviceBuffer<float> weights_;
  gpu::DeviceBuffer<float> gradients_;
  gpu::DeviceBuffer<float> logits_;
  gpu::DeviceBuffer<float> losses_;
  double all_reduce_s_ = 0;
};

void check_equal_on_all(sealane::Comm& comm, const std::vector<float>& weights) {
  std::vector<float> first = weights;
  comm.broadcast(first.data(), first.data(), first.size(), sealane::DataType::float32, 0);
  if (std::memcmp(first.data(), weights.data(), first.size() * sizeof(float)) != 0) {
    fail("rank %d ended with other weights than rank 0", comm.rank());
  }
}

void check_against_host(const Settings& settings, const std::vector<float>& weights, int ranks) {
  const auto wanted = train_on_host(settings, static_cast<uint64_t>(ranks));
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(std::abs(weights[i] - wanted[i]) < 1e-4)) {
      fail("weight %zu is %g, the host has %g", i, static_cast<double>(weights[i]), wanted[i]);
    }
  }
}

void run_rank(const Settings& settings, const sealane::CommOptions& options) {
  sealane::Comm comm(options);
  gpu::init(comm.rank() % gpu::device_count());
  Trainer trainer(settings, static_cast<uint64_t>(comm.rank()));
  comm.barrier();
  const auto start = Clock::now();
  float first_loss = 0;
  float loss = 0;
  for (uint64_t step = 0; step < settings.steps; ++step) {
    loss = trainer.step(comm);
    if (step == 0) first_loss = loss;
  }
  const double total_s = seconds_since(start);
  const std::vector<float> weights = trainer.weights();
  check_equal_on_all(comm, weights);
  if (comm.rank() != 0) return;
  check_against_host(settings, weights, comm.size());

  Hash hash;
  for (const float weight : weights) {
    uint32_t bits = 0;
    std::memcpy(&bits, &weight, sizeof bits);
    hash.add(bits);
  }
  Report report;
  report.add("example", "ddp_ring");
  report.add("api", gpu::api_name());
  report.add("ranks", static_cast<uint64_t>(comm.size()));
  report.add("algorithm", settings.algorithm);
  report.add("steps", settings.steps);
  report.add("gradient_bytes", static_cast<uint64_t>(weights.size() * sizeof(float)));
  report.add("comm_memory_bytes", comm.memory_bytes());
  report.add("first_loss", static_cast<double>(first_loss));
  report.add("last_loss", static_cast<double>(loss));
  report.add("total_s", total_s);
  report.add("all_reduce_s", trainer.all_reduce_s());
  report.add("hash", hash.text());
  report.publish(settings.json);
}

// ---- Starting ranks here ----

// A key and a meeting place for this run alone.
class MeetingPlace {
 public:
  MeetingPlace() {
    char pattern[] = "/tmp/sealane-ddp-XXXXXX";
    if (mkdtemp(pattern) == nullptr) fail("cannot make a directory in /tmp");
    path_ = pattern;
    unsigned char secret[32];
    if (getrandom(secret, sizeof secret, 0) != sizeof secret) fail("no random numbers");
    umask(0077);
    std::FILE* file = std::fopen(key_file().c_str(), "w");
    if (file == nullptr) fail("cannot write %s", key_file().c_str());
    for (const unsigned char byte : secret) std::fprintf(file, "%02x", byte);
    std::fputc('\n', file);
    std::fclose(file);
  }
  ~MeetingPlace() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;

  std::string key_file() const { return path_ + "/key"; }
  std::string rendezvous() const { return "file:" + path_ + "/meet"; }

 private:
  std::string path_;
};

// CUDA does not survive a fork, so it is first touched in the children.
template <typename Body>
pid_t in_a_child(Body body) {
  const pid_t child = fork();
  if (child < 0) fail("cannot start a process");
  if (child > 0) return child;
  const int code = body();
  std::fflush(nullptr);
  std::_Exit(code);
}

int exit_code(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int start_ranks(const Settings& settings, sealane::CommOptions options) {
  int ranks = static_cast<int>(settings.ranks);
  if (ranks == 0) ranks = exit_code(in_a_child([] { return gpu::device_count(); }));
  if (ranks < 1) fail("there is no GPU");
  const MeetingPlace place;
  options.size = ranks;
  options.rendezvous = place.rendezvous();
  options.key_file = place.key_file();
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(in_a_child([&, rank] {
      options.rank = rank;
      or_fail([&] { run_rank(settings, options); });
      return 0;
    }));
  }
  int failed = 0;
  for (const pid_t child : children) failed += exit_code(child) == 0 ? 0 : 1;
  return failed == 0 ? 0 : 1;
}

int run(const Settings& settings) {
  sealane::CommOptions options;
  options.algorithm = settings.algorithm;
  options.timeout = std::chrono::seconds(60);
  const bool launched = std::getenv("RANK") != nullptr || std::getenv("SEALANE_RANK") != nullptr ||
                        std::getenv("OMPI_COMM_WORLD_RANK") != nullptr;
  if (!launched) return start_ranks(settings, options);
  or_fail([&] { run_rank(settings, options); });
  return 0;
}

}  // namespace

}  // namespace examples

int main(int argc, char** argv) { return examples::run(examples::parse(argc, argv)); }
