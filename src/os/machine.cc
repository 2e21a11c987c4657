// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>

namespace sealane {
namespace {

std::string read_text(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The value of the first "name<blanks>: value" line.
std::string_view field(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !line.starts_with(name)) continue;
    const std::string_view between = line.substr(name.size(), colon - name.size());
    if (between.find_first_not_of(" \t") != std::string_view::npos) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string_view::npos ? std::string_view() : line.substr(value);
  }
  return {};
}

template <typename Int>
Int parse_or(std::string_view digits, Int otherwise, int base = 10) {
  Int value{};
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  return parsed.ec == std::errc() ? value : otherwise;
}

unsigned usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(CPU_COUNT(&set));
  return static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

std::optional<uint64_t> lock_limit() {
  if (may_lock_any(read_text("/proc/self/status"))) return std::nullopt;
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 0;
  if (limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

Tee find_tee() {
  const auto exists = [](const char* path) { return access(path, F_OK) == 0; };
  if (exists("/dev/tdx_guest") || exists("/dev/tdx-guest")) return Tee::tdx;
  if (exists("/dev/sev-guest")) return Tee::sev;
  return Tee::none;
}

}  // namespace

Cpu parse_cpuinfo(std::string_view cpuinfo) {
  static constexpr std::array<std::string_view, 7> kMatter = {
      "aes", "pclmulqdq", "vaes", "vpclmulqdq", "avx2", "avx512f", "pmull"};
  Cpu cpu;
  cpu.model = field(cpuinfo, "model name");
  std::string_view flags = field(cpuinfo, "flags");
  if (flags.empty()) flags = field(cpuinfo, "Features");  // Arm
  std::istringstream words{std::string(flags)};
  for (std::string word; words >> word;) {
    if (std::find(kMatter.begin(), kMatter.end(), word) != kMatter.end()) {
      cpu.features.push_back(word);
    }
  }
  return cpu;
}

bool has_swap(std::string_view swaps) {
  return std::count(swaps.begin(), swaps.end(), '\n') > 1;  // the first line is the heading
}

bool may_lock_any(std::string_view status) {
  constexpr int kCapIpcLock = 14;
  const auto capabilities = parse_or<uint64_t>(field(status, "CapEff"), 0, 16);
  return (capabilities >> kCapIpcLock & 1) != 0;
}

unsigned count_listed(std::string_view list) {
  unsigned count = 0;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    const size_t dash = part.find('-');
    const auto first = parse_or<unsigned>(part, 1);
    const auto last =
        dash == std::string_view::npos ? first : parse_or<unsigned>(part.substr(dash + 1), first);
    if (part.find_first_of("0123456789") == 0 && last >= first) count += last - first + 1;
  }
  return count;
}

Machine read_machine() {
  Machine machine;
  machine.cpu = parse_cpuinfo(read_text("/proc/cpuinfo"));
  machine.cores = usable_cores();
  machine.numa_nodes = std::max(1u, count_listed(read_text("/sys/devices/system/node/has_memory")));
  machine.lock_bytes_max = lock_limit();
  machine.swap_on = has_swap(read_text("/proc/swaps"));
  machine.tee = find_tee();
  return machine;
}

}  // namespace sealane
