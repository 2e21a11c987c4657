// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane bench ptx`: how many instructions of how many lanes the emulated GPU's executor runs in
// a second, for a loop of full warps, a tiled matrix product and a copy, by number of workers.

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/try.h"
#include "bench/ptx_code.h"
#include "cli/command.h"
#include "ptx/decode/decode.h"
#include "ptx/exec/executor.h"
#include "ptx/ops/lanes.h"
#include "report/output.h"
#include "report/table.h"

namespace sealane::cli {
namespace {

constexpr uint32_t kSide = 256;                   // of the matrices
constexpr uint64_t kCopied = uint64_t{64} << 20;  // bytes: more than caches hold
constexpr uint64_t kAddress = 0x10000;

struct Flags {
  double seconds = 8;
  std::string json;
};

// One allocation that everything is in.
class OneBlock : public ptx::Device {
 public:
  OneBlock() : memory_(2 * kCopied) {}
  ptx::Window find(uint64_t) override { return {kAddress, memory_.size(), memory_.data()}; }
  uint64_t allocate(uint64_t) override { return 0; }
  bool release(uint64_t) override { return false; }
  void print(std::string_view) override {}
  bool cancelled() override { return false; }
  uint64_t now_ns() override { return 0; }

 private:
  std::vector<uint8_t> memory_;
};

struct Measured {
  std::string what;
  unsigned workers = 0;
  double lane_instructions_per_s = 0;
  double bytes_per_s = 0;  // of global memory, read and written
};

struct Work {
  const char* kernel;
  const char* what;
  ptx::LaunchShape shape;
  std::vector<uint64_t> arguments;
  ptx::Checks checks;
};

void put_arguments(const ptx::Kernel& kernel, const Work& work, std::vector<uint8_t>& out) {
  out.resize(kernel.parameter_bytes);
  for (size_t i = 0; i < work.arguments.size(); ++i) {
    const ptx::Function::Part part = kernel.parameters[i];
    std::copy_n(reinterpret_cast<const uint8_t*>(&work.arguments[i]), part.bytes,
                out.begin() + part.offset);
  }
}

Result<Measured> measure(const std::shared_ptr<const ptx::Module>& module, const Work& work,
                         unsigned workers, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto nothing = [](std::string_view) { return std::optional<uint64_t>(); };
  SEALANE_LET(const auto kernel, ptx::decode_kernel(module, work.kernel, nothing));
  OneBlock device;
  ptx::Executor executor(workers);
  uint64_t lanes = 0;
  uint64_t bytes = 0;
  const Clock::time_point began = Clock::now();
  double elapsed = 0;
  while (elapsed < seconds) {
    ptx::Grid grid;
    grid.kernel = kernel;
    grid.shape = work.shape;
    grid.device = &device;
    grid.blocks = uint64_t{work.shape.grid[0]} * work.shape.grid[1];
    grid.resident_max = 64;
    grid.checks = work.checks;
    put_arguments(*kernel, work, grid.parameters);
    executor.run(grid);
    if (grid.failed()) return internal_error(grid.message);
    lanes += grid.counts.lane_instructions;
    bytes += grid.counts.global_bytes;
    elapsed = std::chrono::duration<double>(Clock::now() - began).count();
  }
  return Measured{work.what, workers, static_cast<double>(lanes) / elapsed,
                  static_cast<double>(bytes) / elapsed};
}

std::vector<Work> all_work() {
  const uint64_t matrix = uint64_t{4} * kSide * kSide;
  const ptx::LaunchShape tiles = {{kSide / 16, kSide / 16, 1}, {16, 16, 1}, 0};
  const std::vector<uint64_t> matrices = {kAddress, kAddress + matrix, kAddress + 2 * matrix,
                                          kSide};
  return {{"fma_loop", "FMA loop, full warps", {{16, 1, 1}, {256, 1, 1}, 0}, {kAddress, 200}, {}},
          {"matrix_product", "matrix product, 16x16 tiles", tiles, matrices, {}},
          {"matrix_product", "the same, --check memory,races", tiles, matrices, {true, true}},
          {"copy_vectors",
           "copy, 16 bytes a thread",
           {{64, 1, 1}, {512, 1, 1}, 0},
           {kAddress, kAddress + kCopied, kCopied / 16},
           {}}};
}

Status bench_ptx(const Flags& flags) {
  SEALANE_TRY(report::check_outputs({{"--json", flags.json}}, {}));
  SEALANE_LET(const auto module, ptx::parse_module(std::string(bench::ptx_code())));
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<unsigned> counts = {1};
  if (cores > 1) counts.push_back(cores);
  const std::vector<Work> all = all_work();
  const auto steps = static_cast<double>(all.size() * counts.size());
  report::Table table({{"device code", report::Align::left},
                       {"workers"},
                       {"instructions/s"},
                       {"growth"},
                       {"memory GB/s"}});
  nlohmann::json json = {{"benchmark", "ptx"}, {"lanes", ptx::lanes().name}};
  for (const Work& work : all) {
    double alone = 0;
    for (const unsigned workers : counts) {
      SEALANE_LET(const auto result, measure(module, work, workers, flags.seconds / steps));
      if (workers == 1) alone = result.lane_instructions_per_s;
      table.add_row({result.what, std::to_string(workers),
                     fmt::format("{:.2f}e9", result.lane_instructions_per_s / 1e9),
                     fmt::format("{:.2f}x", result.lane_instructions_per_s / alone),
                     fmt::format("{:.1f}", result.bytes_per_s / 1e9)});
      json["results"].push_back({{"what", result.what},
                                 {"workers", workers},
                                 {"lane_instructions_per_s", result.lane_instructions_per_s},
                                 {"memory_bytes_per_s", result.bytes_per_s}});
    }
  }
  const std::string head =
      fmt::format("MEASURED: device code on this CPU ({} lanes), each lane's instructions\n",
                  ptx::lanes().name);
  return report::write_results(head + table.text(), flags.json, json);
}

}  // namespace

void add_bench_ptx(const Command& bench) {
  const auto [command, flags] = add_command<Flags>(
      bench, "ptx", "How fast the emulated GPU runs device code, by number of workers", &bench_ptx);
  command.value("--seconds", flags.seconds, "S", "Time to measure [8]", real_number(0.001, 3600));
  command.json(flags.json);
}

}  // namespace sealane::cli
