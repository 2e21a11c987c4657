// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Measurements that others send, foretold before they are read. A folder has
//
//   manifest.toml    what was run, on which platform, and what of it was measured
//   measured.csv     the values, by name: nobody opens it before the predictions are written
//
// 1. read_blind     the manifest; never the values
// 2. foretell       a prediction with its interval for every run
//    (the caller writes them down)
// 3. compare        the values beside them
//
// docs/validation.md has the format. Pure but for what it reads; any thread.
#pragma once

#include <functional>
#include <istream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/copy.h"
#include "estimate/ddp.h"
#include "estimate/interval.h"
#include "estimate/validation.h"
#include "platform/cost.h"
#include "platform/platform.h"
#include "workload/operation.h"
#include "workload/serving/serving.h"

namespace sealane::estimate {

// What was measured of a run.
enum class Metric : uint8_t { loss, slowdown, time, throughput, copy_time, copy_rate };

struct BlindRun {
  std::string name;
  std::string policy = "stock";
  Metric metric = Metric::loss;
  uint32_t workers = 8;
  // One of the four:
  const workload::Serving* serving = nullptr;
  const workload::Model* model = nullptr;
  workload::ServingOptions options{};
  const workload::TrainingModel* training = nullptr;
  DdpOptions ddp{};
  std::optional<workload::Program> program{};
  uint64_t copy_bytes = 0;
  Direction direction = Direction::to_device;
  HostMemory memory = HostMemory::pinned;
};

struct Blind {
  std::string sender;
  std::string manifest;  // files
  std::string measured;
  std::vector<std::string> inputs;  // all that are read, those two among them
  Platform platform;
  std::vector<BlindRun> runs;
};

// Usage errors of one line that name the file and, where there is one, the line.
Result<Blind> read_blind(const std::string& directory);

struct Foretold {
  std::string name;
  std::string unit;  // "%", "x", "ms", "tokens/s", "us", "GB/s"
  double predicted = 0;
  Interval range{};
};

Result<std::vector<Foretold>> foretell(const Blind& blind, uint32_t draws,
                                       const std::function<void(const std::string&)>& progress);

// "name,unit,predicted,low,high", one line each.
std::string foretold_csv(std::span<const Foretold> foretold);

// `measured` has the columns name and value, and may have high: the value is then a range. Every
// run must be there once, and nothing else.
Result<Validation> compare(const Blind& blind, std::span<const Foretold> foretold,
                           std::istream& measured);

// Training in a manifest (blind_training.cc).
constexpr std::string_view kTrainingWorkload = "ddp";

// What is wrong with the option, as an end of a sentence that begins with its name; nothing if it
// was taken.
std::optional<std::string> set_training_option(DdpOptions& options, std::string_view key,
                                               const std::variant<double, std::string>& value);

// `run` has a model of training.
Result<Foretold> foretell_training(const BlindRun& run, const Platform& platform, uint32_t draws);

}  // namespace sealane::estimate
