// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane bench nccl`: network plugins under a harness that plays NCCL (src/nccl), one round of
// each in turn; or, with --check, what NCCL relies on in a plugin.

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/figures.h"
#include "base/try.h"
#include "bench/interleave.h"
#include "bench/scratch.h"
#include "cli/command.h"
#include "cli/message_sizes.h"
#include "cli/progress.h"
#include "comm/key_file.h"
#include "nccl/conformance.h"
#include "nccl/hosts.h"
#include "nccl/player.h"
#include "nccl/tree.h"
#include "report/output.h"
#include "report/table.h"

namespace sealane::cli {
namespace {

namespace fs = std::filesystem;
using nccl::Player;
using nccl::PluginTable;
using nccl::Seat;

constexpr uint64_t kBytesMax = 1_GiB;
constexpr size_t kSliceBytes = 1 << 20;  // as NCCL's proxy cuts with its Simple protocol
constexpr Duration kRoundPatience = std::chrono::minutes(5);

struct Flags : MessageSizes {
  std::vector<std::string> plugins;
  std::string pattern = "allreduce";
  uint32_t warmup = 2;
  uint32_t rounds = 5;
  int ranks = 2;
  int abi = 0;
  bool check = false;
  uint64_t messages = 1000;
  bool hosts = false;
  double gbit_per_s = 10;
  uint32_t delay_us = 0;
  std::string json;
};

// What all rounds share.
struct Setting {
  std::vector<std::string> environment;
  std::optional<nccl::Hosts> hosts;  // of every rank; none: all in this one
};

struct Variant {
  std::string name;
  std::string path;
};

struct Cell {
  double seconds = 0;   // of one operation, the median over rounds
  double spread = 0;    // of the middle half, as a share
  double of_first = 1;  // time over that of the first plugin in the same round, the median
  uint64_t wrong = 0;
};

std::string name_of(const std::string& path) {
  std::string name = fs::path(path).stem();
  for (const char* prefix : {"libnccl-net-", "librccl-net-"}) {
    if (name.starts_with(prefix)) name = name.substr(std::string_view(prefix).size());
  }
  return name;
}

// The plugin beside this program, and those built to compare it with, where they are.
std::vector<Variant> default_variants() {
  std::error_code ignored;
  const fs::path root = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
  std::vector<Variant> found;
  for (const char* place :
       {"lib/libnccl-net-sealane.so", SEALANE_LIBDIR "/libnccl-net-sealane.so",
        "bench/libnccl-net-sealane-plain.so", "bench/libnccl-net-polling-tls.so"}) {
    const fs::path path = root / place;
    const std::string name = name_of(path);
    const bool known = std::any_of(found.begin(), found.end(),
                                   [&](const Variant& one) { return one.name == name; });
    if (!known && fs::exists(path, ignored)) found.push_back({name, path});
  }
  return found;
}

// ---- What a rank does; numbers 0: seconds per operation, 1: wrong values ----

// `moving` is a ring or a tree.
template <typename Moving>
Status measure_all_reduces(Moving& moving, Seat& seat, const Flags& flags, size_t bytes) {
  std::vector<float> values(bytes / sizeof(float));
  uint64_t wrong = 0;
  Instant begun;
  for (uint64_t i = 0; i < uint64_t{flags.warmup} + flags.iterations; ++i) {
    if (i == flags.warmup) begun = SteadyClock().now();
    if (i == 0) std::fill(values.begin(), values.end(), static_cast<float>(seat.rank() + 1));
    SEALANE_TRY(moving.all_reduce(values));
    if (i == 0) {
      const auto sum = static_cast<float>(seat.ranks() * (seat.ranks() + 1) / 2);
      wrong = static_cast<uint64_t>(
          std::count_if(values.begin(), values.end(), [&](float value) { return value != sum; }));
      std::fill(values.begin(), values.end(), 0.0F);
    }
  }
  const std::chrono::duration<double> took = SteadyClock().now() - begun;
  seat.put_number(0, took.count() / flags.iterations);
  seat.put_number(1, static_cast<double>(wrong));
  // Who closes earlier may close what another has not received yet.
  seat.reach(0);
  for (int rank = 0; rank < seat.ranks(); ++rank) {
    SEALANE_TRY(seat.await(rank, 0, nccl::patience()));
  }
  return {};
}

Status play_ring(Player& player, const Flags& flags, size_t bytes) {
  Seat& seat = player.seat();
  const int next = (seat.rank() + 1) % seat.ranks();
  const int previous = (seat.rank() + seat.ranks() - 1) % seat.ranks();
  SEALANE_LET(auto connections, player.connect_ring(next, previous));
  nccl::Ring ring(player, connections, kSliceBytes);
  const Status status = measure_all_reduces(ring, seat, flags, bytes);
  player.close_send(connections.send);
  player.close_receive(connections.receive);
  return status;
}

Status play_tree(Player& player, const Flags& flags, size_t bytes) {
  SEALANE_LET(auto tree, nccl::Tree::connect(player, kSliceBytes));
  const Status status = measure_all_reduces(tree, player.seat(), flags, bytes);
  tree.close();
  return status;
}

// Rank 0 sends to rank 1, which answers: half of the way there and back.
Status play_ping_pong(Player& player, const Flags& flags, size_t bytes) {
  Seat& seat = player.seat();
  const int other = 1 - seat.rank();
  SEALANE_LET(auto pair, player.connect_ring(other, other));
  std::vector<uint8_t> out(bytes);
  std::vector<uint8_t> in(bytes);
  nccl::fill_pattern(out, 1);
  std::vector<double> times;
  for (uint64_t i = 0; i < uint64_t{flags.warmup} + flags.iterations; ++i) {
    const Instant begun = SteadyClock().now();
    SEALANE_LET(auto receiving, player.receive(pair.receive, in.data(), in.size()));
    const auto send = [&]() -> Status {
      SEALANE_LET(auto sending, player.send(pair.send, out.data(), out.size()));
      auto sent = player.wait(sending);
      return sent ? Status() : Status(sent.error());
    };
    if (seat.rank() == 0) {
      SEALANE_TRY(send());
    }
    SEALANE_TRY(player.wait(receiving));
    if (seat.rank() == 1) {
      SEALANE_TRY(send());
    }
    const std::chrono::duration<double> took = SteadyClock().now() - begun;
    if (i >= flags.warmup) times.push_back(took.count() / 2);
  }
  seat.put_number(0, bench::summarize(times).median);
  seat.put_number(1, nccl::check_pattern(in, 1) ? 0 : 1);
  seat.reach(0);
  const Status status = seat.await(other, 0, nccl::patience());
  player.close_send(pair.send);
  player.close_receive(pair.receive);
  return status;
}

Result<std::pair<double, uint64_t>> play_round(const Flags& flags, const Variant& variant,
                                               size_t bytes, const Setting& setting) {
  const auto outcomes =
      nccl::run_job(flags.ranks, kRoundPatience, setting.environment, [&](Seat& seat) -> Status {
        if (setting.hosts) {
          SEALANE_TRY(setting.hosts->enter(seat.rank()));
        }
        SEALANE_LET(auto plugin, PluginTable::load(variant.path, flags.abi));
        SEALANE_LET(auto player, Player::start(*plugin, seat));
        if (flags.pattern == "latency") return play_ping_pong(*player, flags, bytes);
        if (flags.pattern == "tree") return play_tree(*player, flags, bytes);
        return play_ring(*player, flags, bytes);
      });
  double seconds = 0;
  double wrong = 0;
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (!outcomes[rank].passed) {
      return peer_error(fmt::format("{}, rank {}: {}{}{}", variant.name, rank, outcomes[rank].words,
                                    outcomes[rank].plugin_line.empty() ? "" : ": ",
                                    outcomes[rank].plugin_line));
    }
    seconds = std::max(seconds, outcomes[rank].numbers[0]);
    wrong += outcomes[rank].numbers[1];
  }
  return std::pair(seconds, static_cast<uint64_t>(wrong));
}

// Of one plugin, against the first, round by round.
Cell summarise(const std::vector<double>& seconds, const std::vector<double>& first,
               uint64_t wrong) {
  std::vector<double> ratios;
  for (size_t i = 0; i < seconds.size(); ++i) ratios.push_back(seconds[i] / first[i]);
  const bench::Summary times = bench::summarize(seconds);
  return {times.median, times.spread_pct / 100, bench::summarize(ratios).median, wrong};
}

// nccl-tests' factor of an all-reduce.
double bus_factor(const Flags& flags) {
  return flags.pattern == "latency" ? 1 : 2.0 * (flags.ranks - 1) / flags.ranks;
}

// Rounds of all plugins in turn; a cell for each.
Result<std::vector<Cell>> measure_size(const Flags& flags, const std::vector<Variant>& variants,
                                       uint64_t bytes, const Setting& setting) {
  const Progress progress;
  std::vector<std::vector<double>> seconds(variants.size());
  std::vector<uint64_t> wrong(variants.size());
  for (uint32_t round = 0; round < flags.rounds; ++round) {
    for (size_t i = 0; i < variants.size(); ++i) {
      progress.show(fmt::format("{} bytes, round {} of {}: {}", bytes, round + 1, flags.rounds,
                                variants[i].name));
      auto one = play_round(flags, variants[i], bytes, setting);
      if (bench::interrupted()) return io_error("interrupted");
      if (!one) return one.error();
      seconds[i].push_back(one->first);
      wrong[i] += one->second;
    }
  }
  std::vector<Cell> cells;
  for (size_t i = 0; i < variants.size(); ++i) {
    cells.push_back(summarise(seconds[i], seconds[0], wrong[i]));
  }
  return cells;
}

// The largest size in a sentence per plugin.
std::string in_plain_words(const std::vector<Variant>& variants, const std::vector<Cell>& cells,
                           const std::string& size) {
  std::string text;
  for (size_t i = 1; i < variants.size(); ++i) {
    text += wrapped(fmt::format("At {} bytes {} is {:.2f} times as fast as {}.", size,
                                variants[0].name, cells[i].of_first, variants[i].name),
                    0);
  }
  return text;
}

std::string place_of_ranks(const Flags& flags) {
  if (!flags.hosts) return "on one host";
  return fmt::format("in network namespaces of {} Gbit/s{}", flags.gbit_per_s,
                     flags.delay_us == 0 ? "" : fmt::format(", {} us apart", flags.delay_us));
}

std::string headline(const Flags& flags) {
  const std::string what = flags.pattern == "latency"
                               ? "one message there and back, halved,"
                               : fmt::format("{} all-reduce in slices of 1 MiB",
                                             flags.pattern == "tree" ? "tree" : "ring");
  return fmt::format(
      "MEASURED on this machine: {}\nas NCCL's proxy drives it, {} ranks {}; GB/s\n\n", what,
      flags.ranks, place_of_ranks(flags));
}

constexpr const char* kFoot =
    "Medians of {} rounds taken in turn; spread: of the middle half; of first: time\n"
    "over that of the first plugin in the same round.\n";

Status measure(const Flags& flags, const std::vector<Variant>& variants,
               const std::vector<uint64_t>& sizes, const Setting& setting) {
  report::Table table({{"plugin", report::Align::left},
                       {"size"},
                       {"time(us)"},
                       {"spread"},
                       {"algbw"},
                       {"busbw"},
                       {"of first"},
                       {"#wrong"}});
  nlohmann::json rows = nlohmann::json::array();
  uint64_t wrong = 0;
  std::string words;
  for (const uint64_t bytes : sizes) {
    SEALANE_LET(const auto cells, measure_size(flags, variants, bytes, setting));
    if (bytes != sizes.front()) table.add_rule();
    for (size_t i = 0; i < variants.size(); ++i) {
      const Cell& cell = cells[i];
      const double rate = static_cast<double>(bytes) / cell.seconds / 1e9;
      wrong += cell.wrong;
      table.add_row({variants[i].name, std::to_string(bytes),
                     fmt::format("{:.1f}", cell.seconds * 1e6),
                     fmt::format("{:.0f} %", cell.spread * 100), fmt::format("{:.2f}", rate),
                     fmt::format("{:.2f}", rate * bus_factor(flags)),
                     fmt::format("{:.2f}", cell.of_first), std::to_string(cell.wrong)});
      rows.push_back({{"plugin", variants[i].name},
                      {"bytes", bytes},
                      {"seconds", cell.seconds},
                      {"spread", cell.spread},
                      {"of_first", cell.of_first},
                      {"algbw_gb_per_s", rate},
                      {"busbw_gb_per_s", rate * bus_factor(flags)},
                      {"wrong", cell.wrong}});
    }
    words = in_plain_words(variants, cells, std::to_string(bytes));
  }
  const nlohmann::json all = {{"kind", "bench-nccl"},       {"pattern", flags.pattern},
                              {"ranks", flags.ranks},       {"iterations", flags.iterations},
                              {"rounds", flags.rounds},     {"hosts", flags.hosts},
                              {"delay_us", flags.delay_us}, {"rows", rows}};
  const std::string text =
      headline(flags) + table.text() + fmt::format(kFoot, flags.rounds) + words;
  SEALANE_TRY(report::write_results(text, flags.json, all));
  if (wrong != 0) return internal_error("results were wrong");
  return {};
}

Status check(const Flags& flags, const std::vector<Variant>& variants,
             const std::vector<std::string>& environment) {
  bool all = true;
  const Progress progress;
  nlohmann::json rows = nlohmann::json::array();
  std::string text;
  for (const Variant& variant : variants) {
    SEALANE_LET(auto plugin, PluginTable::load(variant.path, flags.abi));
    const int version = plugin->version();
    text += fmt::format("{} (ncclNetPlugin_v{})\n", variant.name, version);
    for (const nccl::Check& one : nccl::all_checks()) {
      progress.show(fmt::format("{}: {}", variant.name, one.name));
      const nccl::Finding finding =
          nccl::run_check({variant.path, version, environment, flags.messages}, one.name);
      if (bench::interrupted()) return io_error("interrupted");
      all = all && finding.passed;
      text +=
          fmt::format("  {:5} {:14} {}\n", finding.passed ? "ok" : "FAIL", one.name, one.promise);
      for (const std::string& more : {finding.words, finding.figures}) {
        if (!more.empty()) text += "        " + wrapped(more, 8);
      }
      rows.push_back({{"plugin", variant.name},
                      {"abi", version},
                      {"check", one.name},
                      {"passed", finding.passed},
                      {"words", finding.words},
                      {"figures", finding.figures}});
    }
  }
  const nlohmann::json result = {{"kind", "nccl-conformance"}, {"rows", rows}};
  SEALANE_TRY(report::write_results(text, flags.json, result));
  return all ? Status() : Status(internal_error("a plugin does not do what NCCL relies on"));
}

Status skip(const Flags& flags, const std::string& why) {
  return report::write_results(wrapped("skipped: " + why, 0), flags.json,
                               {{"kind", "bench-nccl"}, {"skipped", why}});
}

Status run(const Flags& flags) {
  SEALANE_LET(const auto sizes, message_sizes(flags));
  if (flags.pattern == "latency" && flags.ranks != 2) {
    return usage_error("--pattern latency is between two ranks");
  }
  std::vector<Variant> variants;
  for (const std::string& path : flags.plugins) variants.push_back({name_of(path), path});
  if (variants.empty()) variants = default_variants();
  if (variants.empty())
    return usage_error("no plugin found beside this program: use --plugin PATH");
  std::vector<std::string> plugins;
  for (const Variant& variant : variants) plugins.push_back(variant.path);
  SEALANE_TRY(report::check_outputs({{"--json", flags.json}}, plugins));
  if (flags.hosts) {
    if (const Status possible = nccl::Hosts::possible(flags.delay_us > 0); !possible) {
      return skip(flags, possible.error().message);
    }
  }
  const bench::Scratch scratch;
  if (scratch.path().empty()) return io_error("cannot make a directory for the key");
  const std::string key = scratch.path() + "/key";
  SEALANE_TRY(write_key_file(key));
  Setting setting;
  setting.environment = {"SEALANE_KEY_FILE=" + key};
  if (flags.hosts) {
    SEALANE_LET(auto hosts, nccl::Hosts::make(flags.ranks, {flags.gbit_per_s, flags.delay_us}));
    setting.hosts.emplace(std::move(hosts));
    setting.environment.push_back(std::string("NCCL_SOCKET_IFNAME=") + nccl::Hosts::kInterface);
  } else if (getenv("NCCL_SOCKET_IFNAME") == nullptr) {
    setting.environment.emplace_back("NCCL_SOCKET_IFNAME=lo");
  }
  nccl::set_stop(bench::interrupted);
  return flags.check ? check(flags, variants, setting.environment)
                     : measure(flags, variants, sizes, setting);
}

}  // namespace

void add_bench_nccl(const Command& bench) {
  const auto [command, flags] =
      add_command<Flags>(bench, "nccl", "NCCL network plugins, driven as NCCL drives them", &run);
  flags.max_bytes = 16_MiB;
  command.value("--plugin", flags.plugins, "PATH", "libnccl-net-*.so to load; may be repeated");
  command.flag("--check", flags.check, "Check what NCCL relies on instead of measuring");
  command.value("--messages", flags.messages, "N", "With --check: of its longer checks [1000]",
                whole_number(1, UINT64_MAX));
  command.value("--abi", flags.abi, "N", "Version of NCCL's interface, 8 to 12 [newest there is]",
                whole_number(PluginTable::kOldest, PluginTable::kNewest));
  command.value("--pattern", flags.pattern, "NAME",
                "allreduce (a ring), tree or latency [allreduce]",
                one_of({"allreduce", "tree", "latency"}));
  command
      .flag("--hosts", flags.hosts, "A network namespace per rank instead of loopback; needs root")
      .excludes({"--check"});
  command.value("--gbit-per-s", flags.gbit_per_s, "N", "What a host of --hosts sends at most [10]",
                real_number(0.01, 1'000));
  command
      .value("--delay-us", flags.delay_us, "N",
             "How long what a host of --hosts sends is under way [0]", whole_number(0, 1'000'000))
      .needs("--hosts");
  command.value("--ranks", flags.ranks, "N", "Processes to start [2]",
                whole_number(2, nccl::kRanksMax));
  command.bytes("-b", flags.min_bytes, kBytesMax, "BYTES", "Smallest size [64K]");
  command.bytes("-e", flags.max_bytes, kBytesMax, "BYTES", "Largest size [16M]");
  command.value("-f", flags.factor, "N", "Factor from one size to the next [4]",
                whole_number(2, UINT32_MAX));
  command.value("-n", flags.iterations, "N", "Operations per round [20]",
                whole_number(1, UINT32_MAX));
  command.value("-w", flags.warmup, "N", "Operations before [2]", whole_number(0, kWarmupMost));
  command.value("--rounds", flags.rounds, "N", "Rounds of each plugin, in turn [5]",
                whole_number(1, UINT32_MAX));
  command.output("--json", flags.json, "Also write JSON; - is stdout, alone");
  command.footer(
      "Without --plugin: ours, its twin that seals nothing, and one with TLS in the\n"
      "shape of NCCL's own encrypted sockets, as far as they are built. Ranks are\n"
      "processes of this machine; interfaces as NCCL_SOCKET_IFNAME says (lo).");
}

}  // namespace sealane::cli
