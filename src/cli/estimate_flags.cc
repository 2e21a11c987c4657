// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/estimate_flags.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/byte_count.h"
#include "base/bytes.h"
#include "cli/command.h"
#include "platform/reader.h"

namespace sealane::cli {
namespace {

std::vector<std::string> words(std::string_view text, char separator) {
  std::vector<std::string> result;
  std::istringstream in{std::string(text)};
  for (std::string word; std::getline(in, word, separator);) {
    if (!word.empty()) result.push_back(word);
  }
  return result;
}

class Declare {
 public:
  Declare(CLI::App& command, EstimateFlags& flags) : command_(command), flags_(flags) {}

  template <typename T>
  CLI::Option* option(const std::string& name, T& to, const std::string& help,
                      const std::string& type) {
    return known(name, command_.add_option("--" + name, to, help)->type_name(type));
  }
  // Set by its place among the words.
  void word(const std::string& name, const std::string& words, const std::string& help,
            const std::function<void(size_t)>& set) {
    const auto all = estimate::words_of(words);
    const auto found = [all, set](const std::string& word) {
      set(static_cast<size_t>(std::find(all.begin(), all.end(), word) - all.begin()));
    };
    known(name, command_.add_option_function<std::string>("--" + name, found, help))
        ->type_name(words)
        ->check(one_of(all));
  }
  void flag(const std::string& name, bool& to, const std::string& help) {
    known(name, command_.add_flag("--" + name, to, help));
  }

 private:
  CLI::Option* known(const std::string& name, CLI::Option* made) {
    flags_.particular.emplace_back(name, made);
    return made;
  }

  CLI::App& command_;
  EstimateFlags& flags_;
};

void declare_serving(Declare& declare, workload::ServingOptions& to) {
  for (const estimate::ServingOption& each : estimate::serving_options()) {
    const std::string name(each.name);
    const std::string takes(each.takes);
    const std::string help(each.help);
    if (const auto* set = std::get_if<estimate::SetWord>(&each.to)) {
      declare.word(name, takes, help, [set, &to](size_t index) { (*set)(to, index); });
    } else if (const auto* real = std::get_if<1>(&each.to)) {
      declare.option(name, to.**real, help, takes)->check(real_number(each.least, each.most));
    } else {
      declare.option(name, to.*std::get<0>(each.to), help, takes)
          ->check(
              whole_number(static_cast<uint64_t>(each.least), static_cast<uint64_t>(each.most)));
    }
  }
}

void declare_ddp(Declare& declare, estimate::DdpOptions& to, EstimateFlags& flags) {
  declare.word("fabric", "sealane|nccl", "ddp: who carries the gradients [sealane]",
               [&to](size_t index) { to.fabric = static_cast<estimate::Fabric>(index); });
  declare.option("machines", flags.machines, "ddp over nccl: 1 to 1024 [8]", "N")
      ->check(whole_number(1, 1'024));
  declare
      .option("tunnel-gb-per-s", to.tunnel_gb_per_s,
              "ddp over nccl: WireGuard between two machines [1.25]", "GB/S")
      ->check(real_number(0.001, 100'000));
  declare.option("gpus", to.gpus, "ddp: 1 to 1024 [4]", "N");
  declare.option("gpus-per-machine", to.gpus_per_machine, "ddp: in one trusted VM [8]", "N");
  declare.option("bucket", flags.bucket, "ddp: of gradients [25M]", "BYTES");
  declare.option("large-bucket", flags.large_bucket, "ddp: of the policy 'buckets' [1G]", "BYTES");
  declare.word("link", "pcie|nvlink|nvlink-encrypted", "ddp: between GPUs [nvlink]",
               [&to](size_t index) { to.link = static_cast<estimate::Link>(index); });
  declare
      .option("network-gb-per-s", to.network_gb_per_s, "ddp: per GPU, between machines [50]",
              "GB/S")
      ->check(real_number(0.001, 100'000));
  declare.word("sealer", "cpu|copy-engine|gpu-kernel", "ddp: who seals for 'sealane' [cpu]",
               [&to](size_t index) { to.sealer = static_cast<estimate::Sealer>(index); });
  declare
      .option("seal-gb-per-s", to.seal_gb_per_s,
              "ddp: of one core, engine or kernel [the platform's]", "GB/S")
      ->check(real_number(0.001, 100'000));
  declare
      .option("compute-tflops", to.compute_tflops, "ddp: what one GPU reaches [the platform's]",
              "T")
      ->check(real_number(0.001, 1'000'000));
  declare.flag("no-overlap", flags.no_overlap, "ddp: communicate after the backward pass");
}

}  // namespace

void declare(CLI::App& command, EstimateFlags& flags) {
  add_value(command, "--workload", flags.workload, "W", "What to run; --list shows all");
  add_value(command, "traces", flags.traces, "TRACE",
            "Traces of runs with CC off instead: trace format v1, or Nsight Systems CSV");
  add_value(command, "--model", flags.model, "M", "Which model; --list shows all");
  add_value(command, "--platform", flags.platform, "P", "Name or file of a platform, or 'local'");
  add_value(command, "--policy", flags.policies, "P,...",
            "Which, separated by commas [off,stock,parallel,pipellm,sealane; ddp: all]");
  add_value(command, "--workers", flags.workers, "N", "Cores that seal [8; ddp: 16 per machine]")
      ->check(whole_number(1, 1'024));
  add_value(command, "--slots", flags.slots, "BYTES", "Memory for records sealed ahead [256M]");
  add_value(command, "--seed", flags.serving.seed, "N", "Of everything random [1]");
  add_draws(command, flags.draws);
  command.add_flag("--why", flags.why, "Show which numbers the result rests on most");
  command.add_flag("--fleet", flags.fleet,
                   "Show the loss by cores for each GPU, where GPUs share the host");
  for (const auto& [name, to, help] :
       {std::tuple("--gpu-price", &flags.prices.gpu_per_hour, "Of a GPU for an hour"),
        std::tuple("--core-price", &flags.prices.core_per_hour,
                   "Of a core for an hour: what a unit of work costs is shown")}) {
    command.add_option(name, *to, help)->type_name("P")->check(real_number(0, 1'000'000));
  }
  add_output(command, "--save-platform", flags.save_platform,
             "Write the platform, 'local' above all, as a file to keep");
  add_output(command, "--json", flags.json, "Write the result to FILE, - is stdout");
  add_output(command, "--trace", flags.trace,
             "Write a Chrome trace (Perfetto) of the end of the run");
  command.add_flag("--list", flags.list, "Show platforms, workloads and models");
  Declare particular(command, flags);
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

Status only_flags(const EstimateFlags& flags, std::string_view workload, std::string_view read) {
  const std::vector<std::string> known = words(read, ' ');
  for (const auto& [name, option] : flags.particular) {
    if (option->count() == 0 || std::find(known.begin(), known.end(), name) != known.end()) {
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
    if (option->count() > 0) given.emplace_back(name, option->results().front());
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
                     [&](const auto& one) { return one.first == name && one.second->count() > 0; });
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
  if (Status status = complete_fabric(flags); !status) return status;
  constexpr uint64_t kBucketMost = uint64_t{1} << 40;
  for (const auto& [text, to, name] :
       {std::tuple(&flags.bucket, &flags.ddp.bucket_bytes, "--bucket"),
        std::tuple(&flags.large_bucket, &flags.ddp.large_bucket_bytes, "--large-bucket")}) {
    if (text->empty()) continue;
    const auto bytes = parse_byte_count(*text, kBucketMost);
    if (!bytes) return usage_error(fmt::format("{}: {}", name, bytes.error().message));
    *to = *bytes;
  }
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
  for (const std::string& name : words(text, ',')) {
    if (std::find(all.begin(), all.end(), name) == all.end()) return unknown("policy", name, all);
    if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) chosen.push_back(name);
  }
  if (chosen.empty()) return usage_error("--policy: names no policy");
  return chosen;
}

}  // namespace sealane::cli
