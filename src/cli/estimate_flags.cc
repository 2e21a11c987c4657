// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/estimate_flags.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/try.h"
#include "base/words.h"
#include "platform/reader.h"

namespace sealane::cli {
namespace {

constexpr uint64_t kBytesMost = uint64_t{1} << 40;

// Those options that only some workloads read.
class Particular {
 public:
  Particular(const Command& command, EstimateFlags& flags) : command_(command), flags_(flags) {}

  template <typename T>
  void value(const std::string& name, T& to, const std::string& takes, const std::string& help,
             const FlagCheck& check = {}) {
    keep(name, command_.value("--" + name, to, takes, help, check));
  }
  void bytes(const std::string& name, uint64_t& to, const std::string& help) {
    keep(name, command_.bytes("--" + name, to, kBytesMost, "BYTES", help));
  }
  void word(const std::string& name, const std::string& words, const std::string& help,
            const std::function<void(size_t)>& set) {
    keep(name, command_.word("--" + name, words, help, set));
  }
  void flag(const std::string& name, bool& to, const std::string& help) {
    keep(name, command_.flag("--" + name, to, help));
  }

 private:
  void keep(const std::string& name, const Option& option) {
    flags_.particular.emplace_back(name, option);
  }

  const Command& command_;
  EstimateFlags& flags_;
};

void declare_serving(Particular& declare, workload::ServingOptions& to) {
  for (const estimate::ServingOption& each : estimate::serving_options()) {
    const std::string name(each.name);
    const std::string takes(each.takes);
    const std::string help(each.help);
    if (const auto* set = std::get_if<estimate::SetWord>(&each.to)) {
      declare.word(name, takes, help, [set, &to](size_t index) { (*set)(to, index); });
    } else if (const auto* real = std::get_if<1>(&each.to)) {
      declare.value(name, to.**real, takes, help, real_number(each.least, each.most));
    } else {
      declare.value(
          name, to.*std::get<0>(each.to), takes, help,
          whole_number(static_cast<uint64_t>(each.least), static_cast<uint64_t>(each.most)));
    }
  }
}

void declare_ddp(Particular& declare, estimate::DdpOptions& to, EstimateFlags& flags) {
  const FlagCheck rate = real_number(0.001, 100'000);
  declare.word("fabric", "sealane|nccl", "ddp: who carries the gradients [sealane]",
               [&to](size_t index) { to.fabric = static_cast<estimate::Fabric>(index); });
  declare.value("machines", flags.machines, "N", "ddp over nccl: 1 to 1024 [8]",
                whole_number(1, 1'024));
  declare.value("tunnel-gb-per-s", to.tunnel_gb_per_s, "GB/S",
                "ddp over nccl: WireGuard between two machines [1.25]", rate);
  declare.value("gpus", to.gpus, "N", "ddp: 1 to 1024 [4]");
  declare.value("gpus-per-machine", to.gpus_per_machine, "N", "ddp: in one trusted VM [8]");
  declare.bytes("bucket", to.bucket_bytes, "ddp: of gradients [25M]");
  declare.bytes("large-bucket", to.large_bucket_bytes, "ddp: of the policy 'buckets' [1G]");
  declare.word("link", "pcie|nvlink|nvlink-encrypted", "ddp: between GPUs [nvlink]",
               [&to](size_t index) { to.link = static_cast<estimate::Link>(index); });
  declare.value("network-gb-per-s", to.network_gb_per_s, "GB/S",
                "ddp: per GPU, between machines [50]", rate);
  declare.word("sealer", "cpu|copy-engine|gpu-kernel", "ddp: who seals for 'sealane' [cpu]",
               [&to](size_t index) { to.sealer = static_cast<estimate::Sealer>(index); });
  declare.value("seal-gb-per-s", to.seal_gb_per_s, "GB/S",
                "ddp: of one core, engine or kernel [the platform's]", rate);
  declare.value("compute-tflops", to.compute_tflops, "T",
                "ddp: what one GPU reaches [the platform's]", real_number(0.001, 1'000'000));
  declare.flag("no-overlap", flags.no_overlap, "ddp: communicate after the backward pass");
}

}  // namespace

void declare(const Command& command, EstimateFlags& flags) {
  command.value("--workload", flags.workload, "W", "What to run; --list shows all");
  command.value("traces", flags.traces, "TRACE",
                "Traces of runs with CC off instead: trace format v1, or Nsight Systems CSV");
  command.value("--model", flags.model, "M", "Which model; --list shows all");
  command.value("--platform", flags.platform, "P", "Name or file of a platform, or 'local'");
  command.value("--policy", flags.policies, "P,...",
                "Which, separated by commas [off,stock,parallel,pipellm,sealane; ddp: all]");
  command.value("--workers", flags.workers, "N", "Cores that seal [8; ddp: 16 per machine]",
                whole_number(1, 1'024));
  command.bytes("--slots", flags.slot_bytes, kBytesMost, "BYTES",
                "Memory for records sealed ahead [256M]");
  command.value("--seed", flags.serving.seed, "N", "Of everything random [1]");
  command.draws(flags.draws);
  command.flag("--why", flags.why, "Show which numbers the result rests on most");
  command.flag("--fleet", flags.fleet,
               "Show the loss by cores for each GPU, where GPUs share the host");
  const FlagCheck price = real_number(0, 1'000'000);
  command.value("--gpu-price", flags.prices.gpu_per_hour, "P", "Of a GPU for an hour", price);
  command.value("--core-price", flags.prices.core_per_hour, "P",
                "Of a core for an hour: what a unit of work costs is shown", price);
  command.output("--save-platform", flags.save_platform,
                 "Write the platform, 'local' above all, as a file to keep");
  command.output("--json", flags.json, "Write the result to FILE, - is stdout");
  command.output("--trace", flags.trace, "Write a Chrome trace (Perfetto) of the end of the run");
  command.flag("--list", flags.list, "Show platforms, workloads and models");
  Particular particular(command, flags);
  declare_serving(particular, flags.serving);
  declare_ddp(particular, flags.ddp, flags);
}

bool is_platform_file(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".toml");
}

Result<Platform> choose_platform(const std::string& name) {
  if (name == "local") return measure_local_platform();
  std::vector<std::string> names = platform_names();
  if (!is_platform_file(name) && !names.empty() &&
      std::find(names.begin(), names.end(), name) == names.end()) {
    names.emplace_back("local");
    return unknown("platform", name, names);
  }
  return find_platform(name);
}

std::string file_of_choice(const std::string& name) {
  return platform_file(name == "local" ? kLocalGpuFrom : name);
}

Status only_flags(const EstimateFlags& flags, std::string_view workload, std::string_view read) {
  const std::vector<std::string> known = split(read, ' ');
  for (const auto& [name, option] : flags.particular) {
    if (!option.given() || std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    return usage_error(fmt::format("--{} means nothing to '{}', which reads: --{}", name, workload,
                                   fmt::join(known, ", --")));
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> given_flags(const EstimateFlags& flags) {
  std::vector<std::pair<std::string, std::string>> given;
  for (const auto& [name, option] : flags.particular) {
    if (option.given()) given.emplace_back(name, option.text());
  }
  return given;
}

std::string_view ddp_flags() {
  return "batch gpus gpus-per-machine bucket large-bucket link network-gb-per-s sealer "
         "seal-gb-per-s compute-tflops no-overlap fabric machines tunnel-gb-per-s";
}

namespace {

bool was_given(const EstimateFlags& flags, std::string_view name) {
  return std::any_of(flags.particular.begin(), flags.particular.end(),
                     [&](const auto& one) { return one.first == name && one.second.given(); });
}

// Over NCCL machines count; what it does not read is refused.
Status complete_fabric(EstimateFlags& flags) {
  const bool nccl = flags.ddp.fabric == estimate::Fabric::nccl;
  for (const char* name : {"machines", "tunnel-gb-per-s"}) {
    if (!nccl && was_given(flags, name)) {
      return usage_error(fmt::format("--{} is for --fabric nccl", name));
    }
  }
  for (const char* name : {"gpus", "sealer", "large-bucket"}) {
    if (nccl && was_given(flags, name)) {
      return usage_error(
          fmt::format("--{} means nothing to --fabric nccl, which reads --machines, "
                      "--gpus-per-machine, --workers, --network-gb-per-s, --tunnel-gb-per-s",
                      name));
    }
  }
  if (!nccl) return {};
  constexpr uint32_t kGpusPerMachineMost = 1024;
  if (flags.ddp.gpus_per_machine > kGpusPerMachineMost) {
    return usage_error(fmt::format("--gpus-per-machine: at most {}", kGpusPerMachineMost));
  }
  if (flags.machines == 0) flags.machines = 8;
  flags.ddp.gpus = flags.machines * flags.ddp.gpus_per_machine;
  return {};
}

}  // namespace

Status complete_ddp(EstimateFlags& flags) {
  SEALANE_TRY(complete_fabric(flags));
  flags.ddp.overlap = !flags.no_overlap;
  flags.ddp.draws = flags.draws;
  // What was given is known.
  if (was_given(flags, "network-gb-per-s")) flags.ddp.network_spread = 0;
  if (was_given(flags, "tunnel-gb-per-s")) flags.ddp.tunnel_spread = 0;
  if (flags.workers > 0) flags.ddp.workers = flags.workers;
  if (flags.serving.batch) flags.ddp.batch = *flags.serving.batch;
  return {};
}

Result<std::vector<std::string>> choose_policies(const std::string& text,
                                                 const std::vector<std::string>& usual,
                                                 const std::vector<std::string>& all) {
  if (text.empty()) return usual;
  std::vector<std::string> chosen;
  for (const std::string& name : split(text, ',')) {
    if (name.empty()) continue;
    if (std::find(all.begin(), all.end(), name) == all.end()) return unknown("policy", name, all);
    if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) chosen.push_back(name);
  }
  if (chosen.empty()) return usage_error("--policy: names no policy");
  return chosen;
}

}  // namespace sealane::cli
