// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What `sealane estimate` was asked, checked: names are known, numbers are possible, and no flag
// was given that the workload does not read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "core/budget.h"
#include "estimate/ddp.h"
#include "estimate/price.h"
#include "estimate/serving.h"
#include "platform/platform.h"
#include "workload/serving/serving.h"

namespace sealane::cli {

struct EstimateFlags {
  std::string workload;
  std::vector<std::string> traces;
  std::string model;
  std::string platform = "h100-nvl-tdx";
  std::string policies;
  uint32_t workers = 0;  // 0: 8 for serving, 16 for training
  uint64_t slot_bytes = kSlotBytesDefault;
  std::string json;
  std::string trace;
  bool list = false;
  uint32_t draws = estimate::kDraws;
  bool why = false;
  bool fleet = false;
  estimate::Prices prices;
  std::string save_platform;

  workload::ServingOptions serving;

  estimate::DdpOptions ddp;
  uint32_t machines = 0;
  bool no_overlap = false;

  // Options that only some workloads read, by their names without dashes.
  std::vector<std::pair<std::string, Option>> particular;
};

void declare(const Command& command, EstimateFlags& flags);

bool is_platform_file(const std::string& name);  // rather than the name of one of ours
// A platform by name or file; `local` is measured first. A wrong name is answered with the nearest.
Result<Platform> choose_platform(const std::string& name);

// The platform `local`: this machine's cores, memory and its bandwidth, the rates of every engine
// that runs here and of copies, measured now, with the GPU and link of a platform, which nobody can
// measure here (local_platform.cc).
constexpr const char* kLocalGpuFrom = "h100-tdx";
Result<Platform> measure_local_platform();

std::string file_of_choice(const std::string& name);  // what choose_platform(name) reads

// A usage error if a flag was given that is not among `read` (names, separated by spaces).
Status only_flags(const EstimateFlags& flags, std::string_view workload, std::string_view read);

// Those that were given, with their values.
std::vector<std::pair<std::string, std::string>> given_flags(const EstimateFlags& flags);

// The flags of `ddp`, as only_flags() wants them.
std::string_view ddp_flags();

Status complete_ddp(EstimateFlags& flags);  // what was given as text

Result<std::vector<std::string>> choose_policies(const std::string& text,
                                                 const std::vector<std::string>& usual,
                                                 const std::vector<std::string>& all);

}  // namespace sealane::cli
