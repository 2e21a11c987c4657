// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "base/try.h"
#include "estimate/serving.h"
#include "estimate/validation_parts.h"
#include "workload/nsys.h"

namespace sealane::estimate {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = "-off_cuda_api_trace.csv";

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(kSuffix)) names.push_back(name.substr(0, name.size() - kSuffix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// What CC adds to event records, allocations and the like comes from this one.
constexpr std::string_view kSetsCallCost = "streamcluster";

Result<Check> check_one(const Platform& platform, const fs::path& prefix, const std::string& name,
                        const Draw& draw) {
  SEALANE_LET(const auto recorded, workload::load_nsys((prefix.string() + "-off")));
  ServingPlan plan;
  plan.platform = platform;
  plan.policies = {*find_serving_policy("stock")};
  SEALANE_LET(const auto rows, estimate_program(plan, drawn(recorded, draw)));
  SEALANE_LET(const auto truth, workload::nsys_span(prefix.string() + "-on"));
  const double measured = static_cast<double>(truth.count()) / 1e6;
  return Check{.group = "recorded runs",
               .what = fmt::format("{}, CC on from CC off", name),
               .unit = "ms",
               .published_low = measured,
               .published_high = measured,
               .predicted = 1e3 * rows.back().time_s,
               .calibrated = name == kSetsCallCost,
               .source = "ISPASS'25 artifact",
               .note = "first copy or launch to the end of the last; first launch's loading apart"};
}

}  // namespace

std::vector<std::string> validation_files(const std::string& data) {
  std::vector<std::string> files;
  const fs::path directory = fs::path(data) / "nsys";
  for (const std::string& name : names_in(directory)) {
    for (const char* mode : {"-off", "-on"}) {
      for (std::string& file : workload::nsys_files((directory / (name + mode)).string())) {
        files.push_back(std::move(file));
      }
    }
  }
  return files;
}

Result<std::vector<Check>> check_traces(const std::string& data, const Platform& platform,
                                        const Draw& draw) {
  const fs::path directory = fs::path(data) / "nsys";
  const std::vector<std::string> names = names_in(directory);
  if (names.empty()) {
    return usage_error(fmt::format("--data: no NAME{} in {}", kSuffix, directory.string()));
  }
  std::vector<Check> checks;
  for (const std::string& name : names) {
    SEALANE_LET(auto check, check_one(platform, directory / name, name, draw));
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace sealane::estimate
