// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/cpu_topology.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "os/descriptor.h"

namespace sealane {
namespace {

constexpr unsigned kDefaultWorkersMax = 16;
constexpr size_t kNodesMax = 64;
constexpr double kNoQuota = 1e9;

std::string read_text(const KernelFiles& files, std::string_view path) {
  std::string text;
  const Descriptor file(open(concat(files.root, path).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(file.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

std::string_view next_word(std::string_view& text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\n"), text.size());
  text.remove_prefix(begin);
  const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

template <typename Number>
Number number_or(std::string_view word, Number otherwise) {
  Number value{};
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
  return read.ec == std::errc() ? value : otherwise;
}

// The tightest limit on the way from a group to the root. Its own may be wider than its parent's.
template <typename Limit>
auto limit_on_the_way(std::string group, const Limit& limit) {
  auto least = limit(group);
  for (;;) {
    least = std::min(least, limit(group));
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return least;
    group.resize(slash);
  }
}

double read_quota(const KernelFiles& files) {
  const std::string groups = read_text(files, "/proc/self/cgroup");
  const double unified = limit_on_the_way(group_of(groups, ""), [&](const std::string& group) {
    return parse_quota(read_text(files, concat("/sys/fs/cgroup", group, "/cpu.max")));
  });
  const double split = limit_on_the_way(group_of(groups, "cpu"), [&](const std::string& group) {
    const std::string place = concat("/sys/fs/cgroup/cpu", group);
    return parse_quota(concat(read_text(files, concat(place, "/cpu.cfs_quota_us")), " ",
                              read_text(files, concat(place, "/cpu.cfs_period_us"))));
  });
  return std::min(unified, split);
}

// "MemTotal: 24640 kB", in some line, with something before it or not.
uint64_t parse_memory_total(std::string_view text) {
  constexpr std::string_view kName = "MemTotal:";
  const size_t at = text.find(kName);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + kName.size());
  return number_or<uint64_t>(next_word(text), 0) << 10;
}

uint64_t read_memory_limit(const KernelFiles& files) {
  const std::string groups = read_text(files, "/proc/self/cgroup");
  const auto limit = [&](const std::string& file) {
    const std::string text = read_text(files, file);
    std::string_view rest = text;
    return number_or<uint64_t>(next_word(rest), UINT64_MAX);  // "max" is none
  };
  const auto unified = [&](const std::string& group) {
    return limit(concat("/sys/fs/cgroup", group, "/memory.max"));
  };
  const auto split = [&](const std::string& group) {
    return limit(concat("/sys/fs/cgroup/memory", group, "/memory.limit_in_bytes"));
  };
  return std::min(limit_on_the_way(group_of(groups, ""), unified),
                  limit_on_the_way(group_of(groups, "memory"), split));
}

bool holds(const std::vector<unsigned>& cores, unsigned core) {
  return std::find(cores.begin(), cores.end(), core) != cores.end();
}

}  // namespace

std::vector<unsigned> parse_core_list(std::string_view list) {
  std::vector<unsigned> out;
  while (!list.empty()) {
    const size_t comma = std::min(list.find_first_of(",\n"), list.size());
    const std::string_view part = list.substr(0, comma);
    const size_t dash = std::min(part.find('-'), part.size());
    const auto first = number_or<unsigned>(part.substr(0, dash), UINT32_MAX);
    const auto last =
        dash < part.size() ? number_or<unsigned>(part.substr(dash + 1), first) : first;
    for (unsigned core = first; core != UINT32_MAX && core <= last && core < CPU_SETSIZE; ++core) {
      out.push_back(core);
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return out;
}

// "max" and -1 mean that there is none.
double parse_quota(std::string_view cpu_max) {
  const auto quota = number_or<int64_t>(next_word(cpu_max), -1);
  const auto period = number_or<int64_t>(next_word(cpu_max), 0);
  if (quota <= 0 || period <= 0) return kNoQuota;
  return static_cast<double>(quota) / static_cast<double>(period);
}

std::string group_of(std::string_view cgroup, std::string_view controller) {
  while (!cgroup.empty()) {
    std::string_view line = next_line(cgroup);
    line.remove_prefix(std::min(line.find(':') + 1, line.size()));
    const size_t colon = std::min(line.find(':'), line.size());
    std::string_view controllers = line.substr(0, colon);
    const std::string_view group = line.substr(std::min(colon + 1, line.size()));
    if (controllers.empty() && controller.empty()) return group == "/" ? "" : std::string(group);
    while (!controllers.empty()) {
      const size_t comma = std::min(controllers.find(','), controllers.size());
      if (!controller.empty() && controllers.substr(0, comma) == controller) {
        return group == "/" ? "" : std::string(group);
      }
      controllers.remove_prefix(std::min(comma + 1, controllers.size()));
    }
  }
  return "";
}

unsigned CpuTopology::workers_max() const {
  const double usable = std::min(static_cast<double>(own.size()), quota);
  return std::clamp(static_cast<unsigned>(usable / 2), 1u, kDefaultWorkersMax);
}

CpuTopology read_cpu_topology(const KernelFiles& files, const std::vector<unsigned>& allowed,
                              unsigned here) {
  CpuTopology out;
  out.own = allowed;
  out.of_node = std::max<size_t>(1, allowed.size());
  out.quota = read_quota(files);
  size_t nodes = 0;
  for (size_t node = 0; node < kNodesMax; ++node) {
    const auto cores = parse_core_list(
        read_text(files, concat("/sys/devices/system/node/node", node, "/cpulist")));
    if (cores.empty()) continue;  // memory only, or none of this number
    ++nodes;
    if (!holds(cores, here)) continue;
    out.node = node;
    out.of_node = cores.size();
    std::erase_if(out.own, [&](unsigned core) { return !holds(cores, core); });
  }
  out.nodes = std::max<size_t>(1, nodes);
  out.stay = !out.own.empty() && out.own.size() < allowed.size();
  if (out.own.empty()) out.own = allowed;
  return out;
}

CpuTopology read_cpu_topology() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<unsigned> allowed;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) allowed.push_back(core);
    }
  }
  return read_cpu_topology({}, allowed, static_cast<unsigned>(std::max(0, sched_getcpu())));
}

uint64_t read_memory_bytes(const KernelFiles& files, size_t node) {
  uint64_t bytes = parse_memory_total(
      read_text(files, concat("/sys/devices/system/node/node", node, "/meminfo")));
  if (bytes == 0) bytes = parse_memory_total(read_text(files, "/proc/meminfo"));
  return std::min(bytes, read_memory_limit(files));
}

double CoreLoad::look() {
  const std::string stat = read_text(files_, "/proc/stat");
  std::string_view rest = stat;
  uint64_t busy = 0;
  uint64_t all = 0;
  while (rest.starts_with("cpu")) {
    std::string_view line = next_line(rest);
    const auto core = number_or<unsigned>(next_word(line).substr(3), UINT32_MAX);
    if (!holds(cores_, core)) continue;
    for (int field = 0; field < 8; ++field) {  // user nice system idle iowait irq softirq steal
      const auto ticks = number_or<uint64_t>(next_word(line), 0);
      all += ticks;
      if (field != 3 && field != 4) busy += ticks;
    }
  }
  const uint64_t spent = busy - busy_;
  const uint64_t passed = all - all_;
  busy_ = busy;
  all_ = all;
  if (!looked_) {
    looked_ = true;
    const std::string average = read_text(files_, "/proc/loadavg");
    std::string_view text = average;
    return number_or<double>(next_word(text), 0);
  }
  if (passed == 0 || spent > passed) return 0;
  return static_cast<double>(spent) * static_cast<double>(cores_.size()) /
         static_cast<double>(passed);
}

unsigned workers_for(const CpuTopology& cores, double busy, double workers) {
  const double usable = std::min(static_cast<double>(cores.own.size()), cores.quota);
  const double others = std::max(0.0, busy - workers);
  const double left = std::max(1.0, std::round(usable - others));
  return std::min(cores.workers_max(), static_cast<unsigned>(left));
}

}  // namespace sealane
