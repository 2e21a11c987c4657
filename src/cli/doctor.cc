// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// sealane doctor: what this machine has, tried rather than guessed, and what to do about the rest.

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "base/try.h"
#include "bench/memory.h"
#include "bench/seal_trial.h"
#include "cli/checkup.h"
#include "cli/command.h"
#include "cli/nccl_checkup.h"
#include "cli/program_file.h"
#include "cli/read_file.h"
#include "core/budget.h"
#include "os/gpu_probe.h"
#include "os/machine.h"
#include "os/worker_quota.h"
#include "report/output.h"
#include "report/terminal.h"
#include "seal/engine.h"
#include "serve/slot_budget.h"
#include "serve/speculation.h"

namespace sealane::cli {
namespace {

struct Flags {
  std::string json;
  bool nccl = false;
  std::string log;
};

constexpr char kCpuArea[] = "CPU and engine";
constexpr char kSystemArea[] = "System";
constexpr char kGpuArea[] = "GPU";

Finding ok(const char* area, std::string name, std::string detail) {
  return {area, std::move(name), Verdict::ok, std::move(detail), ""};
}

Finding warn(const char* area, std::string name, std::string detail, std::string advice) {
  return {area, std::move(name), Verdict::warn, std::move(detail), std::move(advice)};
}

Finding fail(const char* area, std::string name, std::string detail, std::string advice) {
  return {area, std::move(name), Verdict::fail, std::move(detail), std::move(advice)};
}

std::string counted(size_t count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

Finding check_cpu(const Machine& machine) {
  const std::string& model = machine.cpu.model;
  return ok(
      kCpuArea, "CPU",
      fmt::format("{}, {}, {}", model.empty() ? "unknown model" : model,
                  counted(machine.cores, "usable core"), counted(machine.numa_nodes, "NUMA node")));
}

Finding check_instructions(const Cpu& cpu) {
  const auto has = [&](std::string_view name) {
    return std::find(cpu.features.begin(), cpu.features.end(), name) != cpu.features.end();
  };
  const std::string found = fmt::format("{}", fmt::join(cpu.features, " "));
  if (!has("aes")) {
    return warn(kCpuArea, "AES instructions", "none that the kernel shows",
                "Sealing will be slow and may leak through its timing. Let the virtual machine "
                "pass the host's CPU features through.");
  }
  // Only x86-64 has a wider AES to miss.
  if (has("pclmulqdq") && !(has("vaes") && has("vpclmulqdq"))) {
    return warn(kCpuArea, "AES instructions", found + " (no vaes)",
                "Works, at a fraction of the speed: VAES is in Intel's CPUs since Ice Lake and "
                "AMD's since Zen 3; a virtual machine may hide it.");
  }
  if (has("pclmulqdq") && !has("avx512f")) {
    return ok(kCpuArea, "AES instructions", found + " (no avx512)");
  }
  return ok(kCpuArea, "AES instructions", found);
}

// What one core does with the engine in use, next to a copy: a tenth of a second of it.
Finding check_speed(const Cpu& cpu, const Result<const Engine*>& chosen) {
  constexpr uint64_t kRecordBytes = 16_KiB;
  constexpr Duration kBudget = std::chrono::milliseconds(100);
  const std::string name = "sealing speed";
  std::string gaps = fmt::format("{}", fmt::join(cpu_gaps(cpu), " "));
  const uint64_t walk = bench::walk_bytes(bench::Where::l2, kRecordBytes, bench::cache_sizes());
  const SteadyClock clock;
  if (!chosen || walk == 0) return warn(kCpuArea, name, "not measured", gaps);
  auto trial = bench::SealTrial::make({*chosen}, walk, clock);
  if (!trial) return warn(kCpuArea, name, trial.error().message, gaps);
  const bench::TrialResult result = trial->measure(bench::Where::l2, kRecordBytes, walk, kBudget);
  const bench::OpResult& seal = result.engines.front().seal;
  const std::string found =
      fmt::format("MEASURED: {} seals {:.1f} GB/s on one core, from its cache; a copy makes {:.1f}",
                  (*chosen)->name(), seal.rate_gb_s.median, result.memcpy_gb_s.median);
  return gaps.empty() ? ok(kCpuArea, name, found) : warn(kCpuArea, name, found, gaps);
}

// Every engine of this build, each with its self-test; `chosen` may be none.
void check_engines(const Result<const Engine*>& chosen, std::vector<Finding>& findings) {
  const auto reference = find_engine("openssl");
  for (const Engine* engine : all_engines()) {
    const std::string name = fmt::format("engine {}", engine->name());
    if (const Status available = engine->available(); !available) {
      findings.push_back(warn(kCpuArea, name, available.error().message,
                              "Nothing to do: another engine serves, more slowly."));
      continue;
    }
    const Status healthy = reference ? self_test(*engine, **reference) : reference.error();
    if (!healthy) {
      findings.push_back(fail(kCpuArea, name, healthy.error().message,
                              "Do not seal anything on this machine: its CPU or its crypto "
                              "library gives wrong answers."));
      continue;
    }
    const bool in_use = chosen.ok() && *chosen == engine;
    findings.push_back(
        ok(kCpuArea, name,
           fmt::format("{}, self-tested{}", engine->version(), in_use ? ", in use" : "")));
  }
  if (!chosen) {
    findings.push_back(fail(kCpuArea, "engine in use", chosen.error().message,
                            "Sealane does not seal until this is mended."));
  }
}

Finding check_lock_limit(const Machine& machine) {
  const uint64_t wanted_mib = kSlotBytesDefault >> 20;
  const std::string name = "memory lock";
  if (!machine.lock_bytes_max) return ok(kSystemArea, name, "no limit");
  const std::string found = fmt::format("limit {} KiB, {} MiB wanted for records sealed ahead",
                                        *machine.lock_bytes_max >> 10, wanted_mib);
  if (*machine.lock_bytes_max >= kSlotBytesDefault) return ok(kSystemArea, name, found);
  if (!machine.swap_on) {
    return ok(kSystemArea, name, found + "; swap is off, so they stay in memory all the same");
  }
  return warn(kSystemArea, name, found,
              fmt::format("Raise it: `ulimit -l {}`, LimitMEMLOCK= in a systemd unit, or "
                          "`--ulimit memlock=-1` for a container.",
                          kSlotBytesDefault >> 10));
}

Finding check_slot_memory() {
  const size_t node = read_cpu_topology().node;
  const uint64_t memory = read_memory_bytes({}, node);
  const uint64_t shared = serve::slot_share(memory);
  return ok(
      kSystemArea, "memory for slots",
      fmt::format("{} MiB for all processes of a user on NUMA node {} ({} MiB), {} MiB for "
                  "each unless --slot-mb says otherwise",
                  shared >> 20, node, memory >> 20, std::min(shared, kSlotBytesDefault) >> 20));
}

Finding check_swap(const Machine& machine) {
  if (!machine.swap_on) return ok(kSystemArea, "swap", "off");
  return warn(kSystemArea, "swap", "on",
              "Memory of programs, their secrets included, may reach the disk. In a confidential "
              "VM turn it off (`swapoff -a`) or encrypt it.");
}

Finding check_tee(const Machine& machine) {
  switch (machine.tee) {
    case Tee::tdx:
      return ok(kSystemArea, "trusted VM", "Intel TDX guest");
    case Tee::sev:
      return ok(kSystemArea, "trusted VM", "AMD SEV-SNP guest");
    case Tee::none:
      break;
  }
  return warn(kSystemArea, "trusted VM", "none: neither a TDX nor a SEV-SNP guest device",
              "Fine for trying things out. Secrets need a confidential VM, whose kernel shows "
              "/dev/tdx_guest or /dev/sev-guest.");
}

std::string list_names(const std::vector<std::string>& names) {
  return fmt::format("{} ({})", counted(names.size(), "GPU"), fmt::join(names, ", "));
}

Finding check_gpu(const GpuReport& gpu) {
  const std::string version =
      fmt::format("{}{}", gpu.driver_version.empty() ? "" : ", driver " + gpu.driver_version,
                  gpu.cuda_version.empty() ? "" : ", CUDA " + gpu.cuda_version);
  switch (gpu.presence) {
    case GpuPresence::ready:
      return ok(kGpuArea, "driver", list_names(gpu.names) + version);
    case GpuPresence::no_device:
      return warn(
          kGpuArea, "driver",
          gpu.problem + version + (gpu.names.empty() ? "" : "; there: " + list_names(gpu.names)),
          "See what nvidia-smi says. A confidential GPU starts only after "
          "`nvidia-smi conf-compute -srs 1`; a container needs --gpus.");
    case GpuPresence::no_driver:
      break;
  }
  return warn(kGpuArea, "driver", "none: neither libcuda.so.1 nor libnvidia-ml.so.1 is installed",
              "To use a GPU, install NVIDIA's driver. The emulated one needs none.");
}

Finding check_cc(const GpuReport& gpu) {
  const std::string name = "CC mode";
  switch (gpu.cc) {
    case CcState::on:
      return ok(kGpuArea, name, "on");
    case CcState::off:
      return warn(
          kGpuArea, name, "off: copies cross the bus in the clear",
          "Nothing to speed up. CC mode is switched on from the host, before the VM starts.");
    case CcState::dev_tools:
      return warn(kGpuArea, name, "on, with developer tools: it does not protect",
                  "Fine for development. Switch to CC mode without tools before using secrets.");
    case CcState::simulated:
      return warn(kGpuArea, name, "simulated by the driver: it does not protect",
                  "Fine for development; never for secrets.");
    case CcState::unknown:
      break;
  }
  return warn(kGpuArea, name, "the driver does not say",
              "A driver that supports CC mode tells; compare with `nvidia-smi conf-compute -f`.");
}

std::string describe_outlook(const Checkup& checkup, const GpuReport& gpu) {
  if (checkup.count(Verdict::fail) > 0) {
    return "Something here cannot be trusted. Mend what is marked fail before sealing anything.";
  }
  if (gpu.presence != GpuPresence::ready) {
    return "There is no GPU to use here, so no copies to speed up. `sealane run --emulate -- "
           "PROGRAM` runs a CUDA program on an emulated one; `sealane bench copy` and `sealane "
           "bench seal` measure without a GPU, `sealane estimate` foretells one.";
  }
  if (gpu.cc == CcState::off) {
    return "The GPU is not in CC mode, so its copies are not sealed and cost nothing extra. "
           "`sealane record -o T -- PROGRAM`, then `sealane estimate T`, tells what CC mode would "
           "cost that program.";
  }
  const std::string found = gpu.cc == CcState::unknown
                                ? "Whether copies are sealed here is not known. "
                                : "Every copy is sealed on the CPU here, which is what Sealane is "
                                  "for. It has not yet been run on a real confidential GPU. ";
  return found +
         "Begin with `sealane run --observe -- PROGRAM`: it changes nothing and says what Sealane "
         "could do for that program.";
}

// What the runtime would decide in a program that starts now, by the costs it would measure.
Finding check_speculation() {
  const unsigned threads = WorkerQuota::make()->workers_max() + 1;
  return ok(kCpuArea, "sealing ahead", describe(choose_speculation(serve::Options(), threads)));
}

Checkup examine(const Result<const Engine*>& chosen) {
  const Machine machine = read_machine();
  const GpuReport gpu = interpret(ask_gpu_libraries());
  Checkup checkup;
  auto& findings = checkup.findings;
  findings.push_back(check_cpu(machine));
  findings.push_back(check_instructions(machine.cpu));
  check_engines(chosen, findings);
  findings.push_back(check_speed(machine.cpu, chosen));
  findings.push_back(check_speculation());
  for (Finding& finding : try_page_guards()) findings.push_back(std::move(finding));
  findings.push_back(check_lock_limit(machine));
  findings.push_back(check_slot_memory());
  findings.push_back(check_swap(machine));
  findings.push_back(check_tee(machine));
  findings.push_back(check_gpu(gpu));
  if (gpu.presence != GpuPresence::no_driver) findings.push_back(check_cc(gpu));
  checkup.outlook = describe_outlook(checkup, gpu);
  return checkup;
}

TextStyle style_of_stdout() {
  constexpr size_t kColumnsMin = 60;
  constexpr size_t kColumnsMax = 100;
  TextStyle style;
  if (const size_t columns = report::output_columns(); columns != report::kAnyWidth) {
    style.columns = std::clamp(columns, kColumnsMin, kColumnsMax);
  }
  if (isatty(STDOUT_FILENO) == 0) return style;
  const char* no_colour = std::getenv("NO_COLOR");
  style.colour = no_colour == nullptr || *no_colour == '\0';
  return style;
}

// `more` is what the JSON has besides the findings.
Status show(const Checkup& checkup, const std::string& json_path, const nlohmann::json& more) {
  nlohmann::json json = to_json(checkup);
  json.update(more);
  const std::string text = to_text(checkup, style_of_stdout());
  SEALANE_TRY(report::write_results(text, json_path, json));
  const size_t failed = checkup.count(Verdict::fail);
  if (failed == 0) return {};
  return io_error(counted(failed, "check") +
                  " failed; follow the advice beside it and run this again");
}

Status run_machine_doctor(const Flags& flags) {
  const auto chosen = chosen_engine();
  if (!chosen && chosen.error().kind == ErrorKind::usage) return chosen.error();
  nlohmann::json engine = {{"name", nullptr}, {"version", nullptr}};
  if (chosen) engine = {{"name", (*chosen)->name()}, {"version", (*chosen)->version()}};
  return show(examine(chosen), flags.json, {{"engine", engine}});
}

Status run_nccl_doctor(const Flags& flags) {
  std::optional<std::string> log;
  if (!flags.log.empty()) {
    auto text = read_file(flags.log);
    if (!text) return usage_error("--log: " + text.error().message);
    log = *std::move(text);
  }
  const auto variable = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
  return show(check_nccl(variable, start_nccl_plugin, log), flags.json, nlohmann::json::object());
}

Status run_doctor(const Flags& flags) {
  std::vector<std::string> inputs = {flags.log};
  if (const char* plugin = std::getenv("NCCL_NET_PLUGIN"); flags.nccl && plugin != nullptr) {
    std::ranges::move(places_of_library(nccl_plugin_file(plugin)), std::back_inserter(inputs));
  }
  SEALANE_TRY(report::check_outputs({{"--json", flags.json}}, inputs));
  return flags.nccl ? run_nccl_doctor(flags) : run_machine_doctor(flags);
}

}  // namespace

void add_doctor(const Command& root) {
  const auto [command, flags] =
      add_command<Flags>(root, "doctor", "What this machine has, and what to expect", &run_doctor);
  command.output("--json", flags.json, "Also write the findings as JSON; - is stdout, alone");
  command.flag("--nccl", flags.nccl, "Instead: is what NCCL sends between machines sealed?");
  command.value("--log", flags.log, "FILE", "NCCL's log to look at, too (NCCL_DEBUG=INFO)")
      .needs("--nccl");
  command.footer(
      "Examples:\n"
      "  sealane doctor                       findings, each ok, warn or fail\n"
      "  sealane doctor --json -              the same for programs\n"
      "  SEALANE_AEAD=openssl sealane doctor  with the engine of your choice\n"
      "\n"
      "Exit status: 0 nothing failed, 1 something did, 2 wrong usage. Warnings do not\n"
      "count.");
}

}  // namespace sealane::cli
