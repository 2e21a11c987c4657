// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane bench allreduce`, `reduce_scatter`, `all_gather`, `broadcast`: nccl-tests' flags and
// columns. Starts local ranks (and those of the baselines), or is itself a rank under mpirun or
// torchrun.

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/figures.h"
#include "base/try.h"
#include "bench/collective_trial.h"
#include "bench/collective_worker.h"
#include "bench/scratch.h"
#include "bench/tamper.h"
#include "cli/checkup.h"
#include "cli/command.h"
#include "cli/message_sizes.h"
#include "comm/key_file.h"
#include "os/machine.h"
#include "report/output.h"
#include "report/table.h"

namespace sealane::cli {
namespace {

constexpr uint64_t kBytesMax = 4_GiB;
constexpr uint32_t kLocalRanksMax = 64;

struct Flags : MessageSizes {
  std::string op;
  uint32_t warmup = 1;
  uint32_t check = 1;
  uint32_t ranks = 0;
  std::string transport = "shm";
  std::string algorithm = "auto";
  std::vector<std::string> modes = {"sealed", "plain"};
  std::vector<std::string> baselines;
  std::string json;
  bool tamper = false;
};

struct Plan {
  bench::CollectivePlan collective;
  std::vector<uint64_t> sizes;
  TransportKind transport = TransportKind::shm;
  Algorithm algorithm = Algorithm::automatic;
  std::vector<CommMode> modes;
  std::vector<std::string> baselines;
};

// In the order they were named.
std::vector<std::string> each_once(const std::vector<std::string>& names) {
  std::vector<std::string> once;
  for (const std::string& name : names) {
    if (std::find(once.begin(), once.end(), name) == once.end()) once.push_back(name);
  }
  return once;
}

Result<Plan> make_plan(const Flags& flags) {
  Plan plan;
  plan.collective = {flags.op,         flags.transport, flags.ranks,
                     flags.iterations, flags.warmup,    flags.check != 0};
  SEALANE_LET(const auto sizes, message_sizes(flags));
  for (const uint64_t bytes : sizes) plan.sizes.push_back(bytes / sizeof(float) * sizeof(float));
  auto transport = parse_transport(flags.transport);
  if (!transport) return usage_error("--transport: " + transport.error().message);
  plan.transport = *transport;
  auto algorithm = parse_algorithm(flags.algorithm);
  if (!algorithm) return usage_error("--algorithm: " + algorithm.error().message);
  plan.algorithm = *algorithm;
  for (const std::string& mode : each_once(flags.modes)) {
    plan.modes.push_back(mode == "sealed" ? CommMode::sealed : CommMode::plain);
  }
  plan.baselines = each_once(flags.baselines);
  return plan;
}

std::string program_directory() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

JoinOptions own_options(const Plan& plan, CommMode mode, const std::string& directory) {
  JoinOptions options;
  options.self.group = fmt::format("bench-{}", to_string(mode));
  options.self.size = plan.collective.ranks;
  if (!directory.empty()) {
    options.rendezvous = fmt::format("file:{}/meet-{}", directory, to_string(mode));
    options.key_file = directory + "/key";
  }
  options.mode = mode;
  options.transport = plan.transport;
  options.algorithm = plan.algorithm;
  return options;
}

Result<std::unique_ptr<bench::Team>> start_baseline(const std::string& name, const Plan& plan,
                                                    const std::string& base) {
  const uint32_t ranks = plan.collective.ranks;
  const std::string programs = program_directory();
  if (name == "mpi") {
    const std::string program = programs + "/sealane-bench-mpi";
    if (access(program.c_str(), X_OK) != 0) {
      return usage_error("--baseline mpi: not built; install libopenmpi-dev and build again");
    }
    const char* btl = plan.transport == TransportKind::tcp ? "self,tcp" : "self,vader";
    return bench::Team::start_programs(
        base, ranks,
        {{"mpirun", "--allow-run-as-root", "--oversubscribe", "-np", std::to_string(ranks), "--mca",
          "btl", btl, program, base}});
  }
  const std::string script = programs + "/sealane-bench-gloo";
  std::vector<std::vector<std::string>> lines;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    lines.push_back(
        {"/usr/bin/python3", script, base, std::to_string(rank), std::to_string(ranks)});
  }
  auto team = bench::Team::start_programs(base, ranks, lines);
  if (team) return team;
  return usage_error("--baseline gloo: does not start; install python3-torch (" +
                     team.error().message + ")");
}

using Rows = std::vector<bench::CollectiveRow>;

Result<Rows> measure_all(const Plan& plan, std::vector<bench::Contestant>& contestants) {
  Rows rows;
  for (const uint64_t bytes : plan.sizes) {
    SEALANE_LET(auto measured, bench::measure_collective(plan.collective, bytes, contestants));
    rows.insert(rows.end(), measured.begin(), measured.end());
  }
  return rows;
}

Result<Rows> run_locally(const Plan& plan) {
  const bench::Scratch workshop;  // pipes, keys and meeting points
  if (workshop.path().empty()) return io_error("cannot make a temporary directory");
  SEALANE_TRY(write_key_file(workshop.path() + "/key"));
  std::vector<std::unique_ptr<bench::Team>> teams;
  std::vector<bench::Contestant> contestants;
  const auto enter = [&](std::string system, std::string mode, std::unique_ptr<bench::Team> team) {
    teams.push_back(std::move(team));
    bench::Team* runner = teams.back().get();
    contestants.push_back(
        {std::move(system), std::move(mode),
         [runner](const bench::WorkerCommand& command) { return runner->run(command); }});
  };
  for (const CommMode mode : plan.modes) {
    const JoinOptions options = own_options(plan, mode, workshop.path());
    auto team = bench::Team::fork_ranks(fmt::format("{}/{}", workshop.path(), to_string(mode)),
                                        plan.collective.ranks,
                                        [&](bench::WorkerPipes& pipes, uint32_t rank) {
                                          JoinOptions mine = options;
                                          mine.self.rank = rank;
                                          bench::serve_collectives(pipes, mine);
                                        });
    if (!team) return team.error();
    enter("sealane", std::string(to_string(mode)), std::move(*team));
  }
  for (const std::string& name : plan.baselines) {
    if (name == "gloo" && plan.collective.op == "reduce_scatter") continue;  // it has none
    SEALANE_LET(auto team, start_baseline(name, plan, fmt::format("{}/{}", workshop.path(), name)));
    enter(name, "plain", std::move(team));
  }
  return measure_all(plan, contestants);
}

Status run_tampered(const Plan& plan, const std::string& json) {
  const bench::Scratch workshop;  // pipes, keys and meeting points
  if (workshop.path().empty()) return io_error("cannot make a temporary directory");
  SEALANE_TRY(write_key_file(workshop.path() + "/key"));
  JoinOptions options = own_options(plan, CommMode::sealed, workshop.path());
  options.timeout = std::chrono::seconds(10);
  return bench::show_tampering(options, plan.collective.op, plan.sizes.front(), json);
}

// Every rank does the same; rank 0's figures are shown.
Result<Rows> run_as_rank(Plan& plan, bool& first_rank) {
  plan.collective.lockstep = true;
  std::vector<std::unique_ptr<Communicator>> groups;
  std::vector<std::unique_ptr<bench::CollectiveJob>> jobs;
  std::vector<bench::Contestant> contestants;
  for (const CommMode mode : plan.modes) {
    JoinOptions options = own_options(plan, mode, "");
    options.self.size = 0;  // who we are is the launcher's to say
    SEALANE_LET(auto group, Communicator::create(std::move(options)));
    plan.collective.ranks = group->self().size;
    first_rank = group->self().rank == 0;
    groups.push_back(std::move(group));
    jobs.push_back(std::make_unique<bench::CollectiveJob>(*groups.back()));
    bench::CollectiveJob* job = jobs.back().get();
    contestants.push_back(
        {"sealane", std::string(to_string(mode)),
         [job](const bench::WorkerCommand& command) -> Result<bench::Team::Slice> {
           SEALANE_LET(auto measured, job->run(command));
           return bench::Team::Slice{measured.wrong, std::move(measured.times_ns)};
         }});
  }
  return measure_all(plan, contestants);
}

// ---- What people see ----

std::string ratio_cell(const bench::CollectiveRow& row, const char* base) {
  const auto found = row.ratio.find(base);
  return found == row.ratio.end() ? "" : fmt::format("{:.2f}x", found->second);
}

// As nccl-tests has them: lines that begin with #.
std::string remark(const std::string& words) {
  std::istringstream lines(wrapped(words, 0, 78));
  std::string text;
  for (std::string line; std::getline(lines, line);) text += "# " + line + "\n";
  return text;
}

// nccl-tests' columns as far as 80 fit; --json has them all. Baselines take the place of the 99th
// percentile and of algbw.
std::string table_of(const Rows& rows) {
  using report::Align;
  std::vector<const char*> bases = {"plain"};
  for (const char* base : {"mpi", "gloo"}) {
    const bool measured =
        std::any_of(rows.begin(), rows.end(),
                    [&](const bench::CollectiveRow& row) { return row.system == base; });
    if (measured) bases.push_back(base);
  }
  const bool alone = bases.size() == 1;
  std::vector<report::Table::Column> columns = {
      {"size"}, {"system", Align::left}, {"mode", Align::left}, {"time us"}};
  if (alone) columns.insert(columns.end(), {{"p99 us"}, {"algbw"}});
  columns.insert(columns.end(), {{"busbw"}, {"#wrong"}});
  for (const char* base : bases) columns.push_back({fmt::format("of {}", base)});
  report::Table table(std::move(columns));
  uint64_t last = rows.empty() ? 0 : rows.front().bytes;
  for (const bench::CollectiveRow& row : rows) {
    if (row.bytes != last) table.add_rule();
    last = row.bytes;
    std::vector<std::string> cells = {std::to_string(row.bytes), row.system, row.mode,
                                      fmt::format("{:.1f}", row.time_us)};
    if (alone) {
      cells.push_back(fmt::format("{:.1f}", row.p99_us));
      cells.push_back(fmt::format("{:.2f}", row.algbw_gb_s()));
    }
    cells.push_back(fmt::format("{:.2f}", row.busbw_gb_s()));
    cells.push_back(std::to_string(row.wrong));
    for (const char* base : bases) cells.push_back(ratio_cell(row, base));
    table.add_row(std::move(cells));
  }
  const bench::CollectiveRow& any = rows.front();
  const bool reduces = any.op == "allreduce" || any.op == "reduce_scatter";
  std::string text =
      remark(fmt::format("{} of float{} over {}, {} ranks; GB/s. MEASURED. Time is the median of "
                         "slices, \"of X\" the median ratio of times within rounds.",
                         any.op, reduces ? " (sum)" : "", any.transport, any.ranks)) +
      table.text();
  const bool sealed = std::any_of(rows.begin(), rows.end(), [](const bench::CollectiveRow& row) {
    return row.mode == "sealed";
  });
  if (!sealed) return text;
  const auto gaps = cpu_gaps(read_machine().cpu);
  return gaps.empty() ? text : text + remark(fmt::format("{}", fmt::join(gaps, " ")));
}

nlohmann::json json_of(const Rows& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const bench::CollectiveRow& row : rows) {
    list.push_back({{"op", row.op},
                    {"bytes", row.bytes},
                    {"ranks", row.ranks},
                    {"transport", row.transport},
                    {"system", row.system},
                    {"mode", row.mode},
                    {"time_us", row.time_us},
                    {"p99_us", row.p99_us},
                    {"algbw_gb_s", row.algbw_gb_s()},
                    {"busbw_gb_s", row.busbw_gb_s()},
                    {"wrong", row.wrong},
                    {"ratio", row.ratio}});
  }
  return {{"rows", list}};
}

Status bench_collective(const Flags& flags) {
  SEALANE_LET(auto plan, make_plan(flags));
  SEALANE_TRY(report::check_outputs({{"--json", flags.json}}, {}));
  const bool launched = getenv("OMPI_COMM_WORLD_SIZE") != nullptr || getenv("RANK") != nullptr ||
                        getenv("SEALANE_RANK") != nullptr;
  bool first_rank = true;
  if (plan.collective.ranks == 0 && (!launched || flags.tamper)) plan.collective.ranks = 2;
  if (flags.tamper && plan.collective.ranks < 2) {
    return usage_error("--tamper needs two ranks at least: one alone sends nothing");
  }
  const bool local = plan.collective.ranks > 0;
  if (!local && !plan.baselines.empty()) {
    return usage_error("--baseline needs local ranks: use --ranks N without mpirun or torchrun");
  }
  if (flags.tamper) return run_tampered(plan, flags.json);
  SEALANE_LET(auto rows, local ? run_locally(plan) : run_as_rank(plan, first_rank));
  uint64_t wrong = 0;
  for (const bench::CollectiveRow& row : rows) wrong += row.wrong;
  if (first_rank) {
    SEALANE_TRY(report::write_results(table_of(rows), flags.json, json_of(rows)));
  }
  if (wrong > 0) return internal_error(fmt::format("{} elements of results were wrong", wrong));
  return {};
}

}  // namespace

void add_bench_collective(const Command& bench, const std::string& op, const std::string& what) {
  const auto [command, flags] = add_command<Flags>(bench, op, what, &bench_collective);
  flags.op = op;
  command.bytes("-b,--minbytes", flags.min_bytes, kBytesMax, "N[K|M|G]", "Smallest message [64K]");
  command.bytes("-e,--maxbytes", flags.max_bytes, kBytesMax, "N[K|M|G]", "Largest message [64M]");
  command.value("-f,--stepfactor", flags.factor, "N", "Sizes grow by this factor [4]",
                whole_number(2, UINT32_MAX));
  command.value("-n,--iters", flags.iterations, "N", "Iterations per size, at least [20]",
                whole_number(1, UINT32_MAX));
  command.value("-w,--warmup_iters", flags.warmup, "N", "Untimed iterations [1]",
                whole_number(0, kWarmupMost));
  command.value("-c,--check", flags.check, "0|1", "Check results, 0 or 1 [1]", whole_number(0, 1));
  command.value("--ranks", flags.ranks, "N", "Start this many local ranks [2]",
                whole_number(0, kLocalRanksMax));
  command.value("--transport", flags.transport, "NAME", "shm, tcp or auto [shm]");
  command.value("--algorithm", flags.algorithm, "NAME",
                "auto, exchange, direct, ring or hub [auto]");
  command.value("--mode", flags.modes, "NAME[,NAME]", "sealed, plain or both [sealed,plain]",
                one_of({"sealed", "plain"}));
  command.value("--baseline", flags.baselines, "NAME[,NAME]",
                "Also measure mpi and gloo, if installed", one_of({"mpi", "gloo"}));
  command.flag("--tamper", flags.tamper,
               "Measure nothing; change one bit of one record and show who notices");
  command.json(flags.json);
  command.footer(
      fmt::format("Examples:\n"
                  "  sealane bench {0} --ranks 2 --baseline mpi,gloo\n"
                  "  sealane bench {0} -b 1M -e 100M -f 10 --transport tcp\n"
                  "  SEALANE_KEY_FILE=key torchrun -r 1 -t 1 --nproc_per_node 4 --no_python \\\n"
                  "    sealane bench {0} --mode sealed",
                  op));
}

}  // namespace sealane::cli
