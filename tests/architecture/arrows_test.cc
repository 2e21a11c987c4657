// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does every room include only from the rooms it may know, and is the core pure?
//
// The table below is the plan of the house (docs/architecture.md). A new arrow is added here first,
// on purpose, in a commit of its own.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"base", {}},
    {"seal", {"base"}},
    {"core", {"base", "seal"}},
    {"platform", {"base"}},
    {"workload", {"base", "core"}},
    {"sim", {"base", "core", "platform", "workload"}},
    {"estimate", {"base", "core", "platform", "workload", "sim"}},
    {"ptx", {"base"}},
    {"transport", {"base"}},
    {"live", {"base", "seal", "core", "transport"}},
    {"net", {"base", "seal", "core", "transport", "live"}},
    {"nccl", {"base"}},
    {"report", {"base"}},
    {"emu", {"base", "ptx"}},  // the oracle: it must not share the runtime's bugs
    {"lib", {"base", "seal", "core", "live", "sealane"}},
    {"cli",
     {"base", "seal", "core", "live", "nccl", "platform", "ptx", "report", "workload", "sim",
      "estimate", "sealane"}},
};

bool is_source(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cc";
}

std::vector<std::string> included_rooms(const fs::path& file) {
  static const std::regex pattern("^\\s*#include \"([a-z_]+)/.*\"");
  std::vector<std::string> rooms;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (std::regex_search(line, match, pattern)) rooms.push_back(match[1]);
  }
  return rooms;
}

TEST(Architecture, IncludesFollowTheArrows) {
  const fs::path root = SEALANE_SOURCE_DIR "/src";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!is_source(entry.path())) continue;
    ++files;
    const fs::path relative = entry.path().lexically_relative(root);
    const std::string room = relative.begin()->string();
    const auto allowed = kMayInclude.find(room);
    ASSERT_NE(allowed, kMayInclude.end()) << "the plan has no room '" << room << "'";
    for (const std::string& included : included_rooms(entry.path())) {
      if (included == room) continue;
      EXPECT_TRUE(allowed->second.contains(included))
          << relative << " includes from " << included << ", which " << room << " must not know";
    }
  }
  EXPECT_GT(files, 30) << "looked in the wrong place";
}

// The preload lives in other people's processes: what it is made of knows neither network nor TLS.
TEST(Architecture, WhatThePreloadHasKnowsNeitherNetworkNorTls) {
  const std::regex outside("^\\s*#include (\"(live/comm|transport|core/session)/|<openssl/)");
  const fs::path root = SEALANE_SOURCE_DIR;
  for (const char* folder : {"src/base", "src/seal", "src/core", "src/live", "adapters/preload"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string file = entry.path().lexically_relative(root).string();
      const bool apart = file.starts_with("src/live/comm/") ||
                         file.starts_with("src/core/session/") || file == "src/seal/openssl.cc" ||
                         file.ends_with("_test.cc");
      if (!is_source(entry.path()) || apart) continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        EXPECT_FALSE(std::regex_search(line, outside)) << file << ": " << line;
      }
    }
  }
}

std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  char buffer[4096];
  while (pipe && std::fgets(buffer, sizeof buffer, pipe.get()) != nullptr) {
    std::string line = buffer;
    while (!line.empty() && line.back() == '\n') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

// What the core's objects ask the linker for, demangled.
std::vector<std::string> undefined_symbols_of_core() {
  return lines_of("nm --undefined-only --demangle --format=posix '" SEALANE_CORE_LIBRARY
                  "' '" SEALANE_SESSION_LIBRARY "'");
}

TEST(Architecture, CoreAsksForNoThreadClockSocketFileOrCuda) {
  const std::regex impure(
      "^("
      "pthread_|sem_|thrd_|std::thread|std::jthread|std::mutex|std::condition_variable|"
      "std::__condvar|std::this_thread|futex|"
      "clock_|gettimeofday|nanosleep|usleep|sleep|time$|timer_|std::chrono::_V2::|"
      "socket|connect$|accept|bind$|listen|send$|sendto|sendmsg|recv|poll$|epoll_|select$|"
      "open$|open64|openat|read$|write$|pread|pwrite|close$|fopen|fread|fwrite|fprintf|printf|puts|"
      "std::basic_ofstream|std::basic_ifstream|std::cout|std::cerr|std::ostream|"
      "mmap|munmap|mprotect|mlock|madvise|ioctl|syscall|getrandom|rand$|getenv|dlopen|dlsym|"
      "system$|fork|execv|kill$|signal$|sigaction|"
      "sealane::SteadyClock|sealane::SystemRandom|sealane::log_line|"
      "cu[A-Z]|cuda|nvml|nccl"
      ")");
  const auto symbols = undefined_symbols_of_core();
  ASSERT_GT(symbols.size(), 10u) << "nm found nothing in " SEALANE_CORE_LIBRARY;
  for (const std::string& symbol : symbols) {
    EXPECT_FALSE(std::regex_search(symbol, impure)) << "core links " << symbol;
  }
}

// Every room says what it is for and what it may know.
TEST(Architecture, EveryRoomHasAReadme) {
  for (const auto& [room, allowed] : kMayInclude) {
    if (!fs::exists(fs::path(SEALANE_SOURCE_DIR "/src") / room)) continue;
    EXPECT_TRUE(fs::exists(fs::path(SEALANE_SOURCE_DIR "/src") / room / "README.md")) << room;
  }
}

TEST(Architecture, EverySourceHasItsLicence) {
  for (const char* top : {"src", "include", "tests", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SEALANE_SOURCE_DIR) / top)) {
      if (!is_source(entry.path())) continue;
      std::ifstream in(entry.path());
      std::string first;
      std::string second;
      std::getline(in, first);
      std::getline(in, second);
      // Headers that C programs include have C's comments.
      EXPECT_TRUE(first.ends_with(" SPDX-FileCopyrightText: The Sealane authors")) << entry.path();
      EXPECT_TRUE(second.ends_with(" SPDX-License-Identifier: Apache-2.0")) << entry.path();
    }
  }
}

}  // namespace
