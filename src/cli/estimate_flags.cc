// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/estimate_flags.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/byte_count.h"
#include "base/bytes.h"
#include "cli/draws_option.h"
#include "cli/local_platform.h"
#include "cli/number.h"
#include "cli/output_option.h"
#include "cli/suggest.h"
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
  CLI::Option* option(const std::string& name, T& to, const std::string& help, const char* type) {
    CLI::Option* made = command_.add_option("--" + name, to, help)->type_name(type);
    flags_.particular.emplace_back(name, made);
    return made;
  }

  void count(const std::string& name, std::optional<uint64_t>& to, const std::string& help,
             uint64_t most = 1'000'000) {
    option(name, to, help, "N")->check(whole_number(1, most));
  }
  void number(const std::string& name, std::optional<double>& to, const std::string& help,
              double least, double most, const char* type) {
    option(name, to, help, type)->check(real_number(least, most));
  }
  void flag(const std::string& name, bool& to, const std::string& help) {
    flags_.particular.emplace_back(name, command_.add_flag("--" + name, to, help));
  }

 private:
  CLI::App& command_;
  EstimateFlags& flags_;
};

void declare_serving(Declare& declare, workload::ServingOptions& to, EstimateFlags& flags) {
  declare.count("batch", to.batch, "Sequences or samples computed together");
  declare.count("gpu-batches", to.gpu_batches, "flexgen: batches for each load of weights [1]", 64);
  declare.count("prompt", to.prompt, "Tokens of a prompt or sample", 100'000);
  declare.count("generate", to.generate, "Tokens of an answer", 100'000);
  declare.count("steps", to.steps, "Steps to simulate after the warm-up", 100'000);
  declare.number("weights-on-gpu", to.weights_on_gpu, "Share that is not offloaded [0]", 0, 1,
                 "0..1");
  declare.number("kv-on-gpu", to.kv_on_gpu, "flexgen: share of KV that is not offloaded [1]", 0, 1,
                 "0..1");
  declare.number("rate", to.rate, "vllm: requests per second; 0: as fast as they are taken [0]", 0,
                 10'000, "R");
  declare.number("minutes", to.minutes, "vllm: time to simulate [2]", 0.01, 10'000, "M");
  declare.option("lengths", flags.lengths, "vllm: of prompts and answers [sharegpt]",
                 "alpaca|sharegpt");
  declare.count("samples", to.samples, "vllm: answers to each request [2]", 16);
  declare.option("swap-unit", flags.swap_unit, "vllm: what one copy moves [layer]",
                 "block|layer|request");
  declare.number("offload-gb", to.offload_gb, "weight-offload: streamed in every step [10]", 0.001,
                 10'000, "GB");
  declare.number("step-ms", to.step_ms, "A step of the GPU; weight-offload [40], decode [roofline]",
                 0.001, 1'000'000, "MS");
  declare.count("concurrency", to.concurrency, "decode: sequences at a time [16]", 100'000);
  declare.number("host-us", to.host_us, "The engine's own work for each step [1000]", 0, 10'000'000,
                 "US");
  declare.number("sequence-us", to.sequence_us, "decode: and for each sequence of a step [2.8]", 0,
                 100'000, "US");
  declare.number("front-ms", to.front_ms,
                 "kv-restore: of a request, outside the engine's steps [14]", 0, 1'000'000, "MS");
  declare.option("graphs", flags.graphs, "decode: how a step is launched [full]",
                 "none|piecewise|full");
  declare.number("kernels-per-layer", to.kernels_per_layer,
                 "decode: launched one by one without graphs [10]", 1, 1'000, "N");
  declare.number("dispatch-us", to.dispatch_us, "decode: the framework's work before a launch [9]",
                 0, 100'000, "US");
  declare
      .option("step-copies", to.step_copies,
              "decode: small copies in of every step, and one out; 0: none [5]", "N")
      ->check(whole_number(0, 10'000));
  declare
      .option("steps-ahead", to.steps_ahead,
              "decode: the engine works ahead of the tokens it has, or waits for each step [1]",
              "0|1")
      ->check(whole_number(0, 1));
  declare.count("prefix", to.prefix, "kv-restore: tokens brought back [4096]", 10'000'000);
  declare.number("read-gb-per-s", to.read_gb_per_s, "load: of the file; 0: it is in memory [0]", 0,
                 1'000, "GB/S");
}

void declare_ddp(Declare& declare, estimate::DdpOptions& to, EstimateFlags& flags) {
  declare.option("fabric", flags.fabric, "ddp: who carries the gradients [sealane]",
                 "sealane|nccl");
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
  declare.option("link", flags.link, "ddp: between GPUs [nvlink]", "pcie|nvlink|nvlink-encrypted");
  declare
      .option("network-gb-per-s", to.network_gb_per_s, "ddp: per GPU, between machines [50]",
              "GB/S")
      ->check(real_number(0.001, 100'000));
  declare.option("sealer", flags.sealer, "ddp: who seals for 'sealane' [cpu]",
                 "cpu|copy-engine|gpu-kernel");
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
  command.add_option("--workload", flags.workload, "What to run; --list shows all")->type_name("W");
  command
      .add_option("traces", flags.traces,
                  "Traces of runs with CC off instead: trace format v1, or Nsight Systems CSV")
      ->type_name("TRACE");
  command.add_option("--model", flags.model, "Which model; --list shows all")->type_name("M");
  command.add_option("--platform", flags.platform, "Name or file of a platform, or 'local'")
      ->type_name("P");
  command
      .add_option("--policy", flags.policies,
                  "Which, separated by commas [off,stock,parallel,pipellm,sealane; ddp: all]")
      ->type_name("P,...");
  command.add_option("--workers", flags.workers, "Cores that seal [8; ddp: 16 per machine]")
      ->type_name("N")
      ->check(whole_number(1, 1'024));
  command.add_option("--slots", flags.slots, "Memory for records sealed ahead [256M]")
      ->type_name("BYTES");
  command.add_option("--seed", flags.serving.seed, "Of everything random [1]")->type_name("N");
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
  declare_serving(particular, flags.serving, flags);
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
    return usage_error(
        fmt::format("--platform: unknown platform '{}'{}", name, did_you_mean(name, names)));
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

Status complete_serving(EstimateFlags& flags) {
  using workload::Lengths;
  using workload::SwapUnit;
  if (!flags.lengths.empty()) {
    if (flags.lengths != "alpaca" && flags.lengths != "sharegpt") {
      return usage_error(fmt::format("--lengths: unknown '{}'{}", flags.lengths,
                                     did_you_mean(flags.lengths, {"alpaca", "sharegpt"})));
    }
    flags.serving.lengths = flags.lengths == "alpaca" ? Lengths::alpaca : Lengths::sharegpt;
  }
  if (!flags.swap_unit.empty()) {
    const std::vector<std::string> units{"block", "layer", "request"};
    const auto found = std::find(units.begin(), units.end(), flags.swap_unit);
    if (found == units.end()) {
      return usage_error(fmt::format("--swap-unit: unknown '{}'{}", flags.swap_unit,
                                     did_you_mean(flags.swap_unit, units)));
    }
    flags.serving.swap_unit = static_cast<SwapUnit>(found - units.begin());
  }
  if (flags.graphs.empty()) return {};
  const std::vector<std::string> graphs{"none", "piecewise", "full"};
  const auto found = std::find(graphs.begin(), graphs.end(), flags.graphs);
  if (found == graphs.end()) {
    return usage_error(
        fmt::format("--graphs: unknown '{}'{}", flags.graphs, did_you_mean(flags.graphs, graphs)));
  }
  flags.serving.graphs = static_cast<workload::Graphs>(found - graphs.begin());
  return {};
}

namespace {

bool was_given(const EstimateFlags& flags, std::string_view name) {
  return std::any_of(flags.particular.begin(), flags.particular.end(),
                     [&](const auto& one) { return one.first == name && one.second->count() > 0; });
}

// Over NCCL machines count; what it does not read is refused.
Status complete_fabric(EstimateFlags& flags) {
  if (!flags.fabric.empty() && flags.fabric != "sealane" && flags.fabric != "nccl") {
    return usage_error(fmt::format("--fabric: unknown '{}'{}", flags.fabric,
                                   did_you_mean(flags.fabric, {"sealane", "nccl"})));
  }
  const bool nccl = flags.fabric == "nccl";
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
  flags.ddp.fabric = estimate::Fabric::nccl;
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
  if (!flags.link.empty()) {
    const auto link = estimate::find_link(flags.link);
    if (!link) {
      return usage_error(
          fmt::format("--link: unknown link '{}'{}", flags.link,
                      did_you_mean(flags.link, {"pcie", "nvlink", "nvlink-encrypted"})));
    }
    flags.ddp.link = *link;
  }
  if (!flags.sealer.empty()) {
    const auto sealer = estimate::find_sealer(flags.sealer);
    if (!sealer) {
      return usage_error(
          fmt::format("--sealer: unknown '{}'{}", flags.sealer,
                      did_you_mean(flags.sealer, {"cpu", "copy-engine", "gpu-kernel"})));
    }
    flags.ddp.sealer = *sealer;
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
    if (std::find(all.begin(), all.end(), name) == all.end()) {
      return usage_error(
          fmt::format("--policy: unknown policy '{}'{}", name, did_you_mean(name, all)));
    }
    if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) chosen.push_back(name);
  }
  if (chosen.empty()) return usage_error("--policy: names no policy");
  return chosen;
}

}  // namespace sealane::cli
