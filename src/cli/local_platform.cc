// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/local_platform.h"

#include <fmt/core.h>

#include <string>

#include "bench/memory.h"
#include "bench/seal_trial.h"
#include "cli/progress.h"
#include "os/machine.h"
#include "platform/reader.h"
#include "platform/spread.h"
#include "seal/engine.h"
#include "seal/openssl.h"

namespace sealane::cli {
namespace {

constexpr const char* kGpuFrom = "h100-tdx";
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
  to = value;
  set(platform, key, fmt::format("{:.2f}", value), source, usual_spread(kind_of(source)));
}

Result<bench::TrialResult> measure() {
  const auto fast = chosen_engine();
  if (!fast) return fast.error();
  std::vector<const Engine*> engines{*fast};
  if (*fast != &openssl_engine()) engines.push_back(&openssl_engine());
  const uint64_t walk = bench::walk_bytes(bench::Where::dram, kRecordBytes, bench::cache_sizes());
  const SteadyClock clock;
  const Progress progress;
  progress.show("measuring this machine's sealing and copy rates");
  auto trial = bench::SealTrial::make(engines, walk, clock);
  if (!trial) return trial.error();
  return trial->measure(bench::Where::dram, kRecordBytes, walk, kBudget);
}

}  // namespace

Result<Platform> measure_local_platform() {
  auto platform = find_platform(kGpuFrom);
  if (!platform) return platform.error();
  auto measured = measure();
  if (!measured) return measured.error();

  Platform local = *std::move(platform);
  for (Parameter& parameter : local.parameters) {
    parameter.source = fmt::format("as on {}: {}", kGpuFrom, parameter.source);
  }
  local.name = "local";
  local.description =
      fmt::format("this machine's cores and rates, the GPU and link of {}", kGpuFrom);
  const std::string source = "measured on this machine just now";
  const bench::EngineResult& fast = measured->engines.front();
  const bench::EngineResult& stock = measured->engines.back();
  set(local, "host.fast_aead_gb_per_s", local.host.fast_aead_gb_per_s, fast.seal.rate_gb_s.median,
      source);
  local.host.fast_aead_library = fast.engine;
  set(local, "host.fast_aead_library", fast.engine, source);
  set(local, "host.memcpy_gb_per_s", local.host.memcpy_gb_per_s,
      measured->stream_copy.rate_gb_s.median, source);
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
  local.host.memory_bytes = bench::available_memory_bytes();
  set(local, "host.memory_bytes", fmt::format("{}", local.host.memory_bytes),
      "what can be used without swapping, just now");
  return local;
}

}  // namespace sealane::cli
