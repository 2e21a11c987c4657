// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/try.h"
#include "bench/memory.h"
#include "bench/seal_trial.h"
#include "cli/estimate_flags.h"
#include "cli/progress.h"
#include "cli/utc_now.h"
#include "os/machine.h"
#include "platform/reader.h"
#include "platform/spread.h"
#include "seal/engine.h"
#include "seal/openssl.h"

namespace sealane::cli {
namespace {

constexpr uint64_t kRecordBytes = 64 << 10;
constexpr Duration kBudget{2'000'000'000};

void set(Platform& platform, const std::string& key, const std::string& value,
         const std::string& source, double spread = 0) {
  for (Parameter& parameter : platform.parameters) {
    if (parameter.key == key) parameter = {key, value, source, kind_of(source), spread};
  }
}

void set(Platform& platform, const std::string& key, double& to, double value,
         const std::string& source) {
  to = std::round(100 * value) / 100;
  set(platform, key, fmt::format("{}", to), source, usual_spread(kind_of(source)));
}

// The one that seals first, OpenSSL last, between them whatever else runs here.
Result<std::vector<const Engine*>> engines_here() {
  SEALANE_LET(const auto fast, chosen_engine());
  std::vector<const Engine*> engines{fast};
  for (const Engine* engine : all_engines()) {
    if (engine != fast && engine != &openssl_engine() && engine->available()) {
      engines.push_back(engine);
    }
  }
  if (fast != &openssl_engine()) engines.push_back(&openssl_engine());
  return engines;
}

Result<bench::TrialResult> measure() {
  SEALANE_LET(const auto here, engines_here());
  const std::vector<const Engine*>& engines = here;
  const uint64_t walk = bench::walk_bytes(bench::Where::dram, kRecordBytes, bench::cache_sizes());
  const SteadyClock clock;
  const Progress progress;
  progress.show("measuring this machine's sealing and copy rates");
  SEALANE_LET(auto trial, bench::SealTrial::make(engines, walk, clock));
  return trial.measure(bench::Where::dram, kRecordBytes, walk, kBudget);
}

// "vaes-512 6.8, aes-ni 4.1": so that whoever keeps the file sees what the others would have done.
std::string rates_text(const bench::TrialResult& measured) {
  std::string text;
  for (const bench::EngineResult& each : measured.engines) {
    text += fmt::format("{}{} {:.1f}", text.empty() ? "" : ", ", each.engine,
                        each.seal.rate_gb_s.median);
  }
  return text;
}

// All cores copy at once: what they reach together, reads and writes counted, is the memory's. Each
// counts with its median piece, so that somebody else's work on this machine does not.
Result<double> measure_memory(unsigned cores) {
  constexpr uint64_t kBytes = uint64_t{32} << 20;  // of each, twice: more than its share of a cache
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  constexpr size_t kPasses = 8;
  std::vector<bench::Buffer> from;
  std::vector<bench::Buffer> to;
  for (unsigned i = 0; i < cores; ++i) {
    auto source = bench::Buffer::make(kBytes);
    auto destination = bench::Buffer::make(kBytes);
    if (!source) return source.error();
    if (!destination) return destination.error();
    from.push_back(*std::move(source));
    to.push_back(*std::move(destination));
  }
  std::vector<double> rates(cores);
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < cores; ++i) {
    threads.emplace_back([&, i] {
      const SteadyClock clock;
      std::vector<double> pieces;
      for (uint64_t at = 0; at < kPasses * kBytes; at += kPiece) {
        const Instant began = clock.now();
        std::memcpy(to[i].bytes().data() + at % kBytes, from[i].bytes().data() + at % kBytes,
                    kPiece);
        const auto took = static_cast<double>((clock.now() - began).count());
        pieces.push_back(2.0 * static_cast<double>(kPiece) / took);
      }
      const auto middle = pieces.begin() + static_cast<std::ptrdiff_t>(pieces.size() / 2);
      std::nth_element(pieces.begin(), middle, pieces.end());
      rates[i] = *middle;
    });
  }
  threads.clear();  // joins
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace

Result<Platform> measure_local_platform() {
  SEALANE_LET(auto platform, find_platform(kLocalGpuFrom));
  SEALANE_LET(auto measured, measure());

  Platform local = std::move(platform);
  for (Parameter& parameter : local.parameters) {
    parameter.source = fmt::format("{}; as on {}", parameter.source, kLocalGpuFrom);
  }
  local.name = "local";
  local.description =
      fmt::format("this machine's cores and rates, the GPU and link of {}", kLocalGpuFrom);
  const std::string source = "measured on this machine, " + utc_now("%F");
  const bench::EngineResult& fast = measured.engines.front();
  const bench::EngineResult& stock = measured.engines.back();
  set(local, "host.fast_aead_gb_per_s", local.host.fast_aead_gb_per_s, fast.seal.rate_gb_s.median,
      fmt::format("{}; one core, 64 KiB from DRAM: {}", source, rates_text(measured)));
  local.host.fast_aead_library = fast.engine;
  set(local, "host.fast_aead_library", fast.engine, source);
  set(local, "host.memcpy_gb_per_s", local.host.memcpy_gb_per_s,
      measured.stream_copy.rate_gb_s.median, source);
  for (const auto& [key, path, rate] :
       {std::tuple("to_device", &local.to_device.cc, stock.seal.rate_gb_s.median),
        std::tuple("to_host", &local.to_host.cc, stock.open.rate_gb_s.median)}) {
    const std::string prefix = fmt::format("{}.cc.", key);
    set(local, prefix + "stock_aead_gb_per_s", path->stock_aead_gb_per_s, rate, source);
    set(local, prefix + "stock_aead_cold_gb_per_s", path->stock_aead_cold_gb_per_s, rate, source);
  }
  local.cc.stock_aead_library = "OpenSSL of this system";
  set(local, "cc.stock_aead_library", local.cc.stock_aead_library, source);
  local.host.cores = read_machine().cores;
  set(local, "host.cores", fmt::format("{}", local.host.cores), source);
  SEALANE_LET(const auto memory, measure_memory(read_machine().cores));
  set(local, "host.memory_gb_per_s", local.host.memory_gb_per_s, memory,
      source + ": all cores copying at once");
  local.host.memory_bytes = bench::available_memory_bytes();
  set(local, "host.memory_bytes", fmt::format("{}", local.host.memory_bytes),
      "what could be used without swapping, " + utc_now("%F"));
  return local;
}

}  // namespace sealane::cli
