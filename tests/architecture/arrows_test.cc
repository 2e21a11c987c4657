// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does everybody include only from the rooms he may know, and is the core pure?
//
// The table below is the plan of the house (docs/architecture.md): rooms of src/, the adapters, and
// whoever tests or measures them. A new arrow is added here first, on purpose, in a commit of its
// own.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SEALANE_SOURCE_DIR;

struct Row {
  std::string folder;  // of the tree
  std::set<std::string> may_include;
};

// A folder within another one is a room of its own. include/sealane is what everybody else sees.
const std::vector<Row>& plan() {
  static const std::vector<Row> rows = {
      {"src/base", {}},
      {"src/seal", {"src/base"}},
      {"src/core", {"src/base", "src/seal"}},
      {"src/core/session", {"src/base", "src/seal", "src/core"}},  // TLS
      {"src/platform", {"src/base"}},
      {"src/workload", {"src/base", "src/core"}},
      {"src/sim", {"src/base", "src/core", "src/platform", "src/workload"}},
      {"src/estimate", {"src/base", "src/core", "src/platform", "src/workload", "src/sim"}},
      {"src/ptx", {"src/base"}},
      {"src/transport", {"src/base"}},
      {"src/os", {"src/base"}},
      // In other people's processes: no network, no TLS.
      {"src/serve", {"src/base", "src/seal", "src/core", "src/os"}},
      {"src/watch", {"src/base", "src/seal", "src/core", "src/os", "src/serve"}},
      {"src/comm",
       {"src/base", "src/seal", "src/core", "src/core/session", "src/os", "src/transport"}},
      {"src/net", {"src/base", "src/seal", "src/core/session", "src/transport", "src/comm"}},
      {"src/nccl", {"src/base"}},
      {"src/report", {"src/base"}},
      {"src/cuda_abi", {}},
      // The oracle: it must not share the runtime's bugs.
      {"src/emu", {"src/base", "src/ptx", "src/cuda_abi"}},
      {"src/lib", {"src/base", "src/seal", "src/comm", "include/sealane"}},
      {"src/bench", {"src/base", "src/seal", "src/comm", "src/report"}},
      {"src/cli",
       {"src/base", "src/seal", "src/core", "src/core/session", "src/os", "src/serve", "src/watch",
        "src/comm", "src/nccl", "src/platform", "src/ptx", "src/report", "src/workload", "src/sim",
        "src/estimate", "src/bench"}},
      {"include/sealane", {}},

      {"adapters/preload",
       {"src/base", "src/seal", "src/os", "src/serve", "src/watch", "src/cuda_abi"}},
      {"adapters/torch", {"include/sealane"}},
      {"adapters/nccl", {"src/base", "src/net", "src/nccl"}},
      {"adapters/aten", {"src/emu"}},                                // what it has beyond CUDA
      {"examples", {"include/sealane", "src/cuda_abi", "src/emu"}},  // emu: what it has beyond CUDA

      {"bench", {"src/base", "src/seal", "src/core", "src/serve", "src/report", "src/cuda_abi"}},
      {"bench/baseline", {"src/bench"}},
      {"bench/nccl", {"src/nccl"}},

      // As users see it: what is tested is not asked for help.
      {"tests/api", {"include/sealane"}},
      {"tests/cli", {"tests/support"}},
      {"tests/clients", {"src/cuda_abi"}},
      {"tests/cuda", {"src/cuda_abi", "examples"}},
      {"tests/examples", {"tests/support"}},
      {"tests/package", {"include/sealane"}},
      {"tests/preload",
       {"src/base", "src/seal", "src/cuda_abi", "src/emu", "tests/cuda", "tests/support"}},
      {"tests/support", {}},
      {"tests/torch", {}},
      // From within.
      {"tests/architecture", {}},
      {"tests/conformance", {"src/seal"}},
      {"tests/constant_time", {"src/seal"}},
      {"tests/emu", {"src/base", "src/platform", "src/cuda_abi", "src/emu", "tests/support"}},
      {"tests/fuzz",
       {"src/base", "src/seal", "src/core", "src/core/session", "src/comm", "src/net",
        "src/platform", "src/ptx", "src/report", "src/watch", "src/workload"}},
      {"tests/nccl", {"src/base", "src/nccl"}},
      {"tests/ptx", {"src/ptx"}},
      {"tests/scenario",
       {"src/base", "src/core", "src/platform", "src/sim", "src/workload", "src/cuda_abi",
        "src/emu", "tests/support"}},
      {"tests/watch",
       {"src/base", "src/platform", "src/sim", "src/watch", "src/workload", "src/cuda_abi",
        "tests/preload", "tests/support"}},
  };
  return rows;
}

bool is_source(const fs::path& path) {
  static const std::set<std::string> kinds = {".h", ".cc", ".c", ".cu", ".def", ".inc"};
  return kinds.contains(path.extension());
}

bool is_below(const std::string& file, const std::string& folder) {
  return file.starts_with(folder + "/");
}

// The innermost room around a file of the tree; nothing if the plan has none.
const Row* room_of(const std::string& file) {
  const Row* found = nullptr;
  for (const Row& row : plan()) {
    const bool inner = found == nullptr || row.folder.size() > found->folder.size();
    if (is_below(file, row.folder) && inner) found = &row;
  }
  return found;
}

// Which file of the tree an #include means; nothing if it is beside the includer, or not ours.
std::optional<std::string> included_file(const std::string& name) {
  for (const char* from :
       {"src", "include", "tests", "examples", "src/cuda_abi", "src/emu/abi", "."}) {
    const fs::path file = (fs::path(from) / name).lexically_normal();
    if (fs::is_regular_file(kRoot / file)) return file.string();
  }
  return {};
}

std::vector<std::string> includes_of(const fs::path& file) {
  static const std::regex pattern("^\\s*#\\s*include [\"<]([^\">]+)[\">]");
  std::vector<std::string> names;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, pattern)) continue;
    if (!fs::exists(file.parent_path() / match[1].str())) names.push_back(match[1]);
  }
  return names;
}

std::vector<std::string> sources_below(const char* folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    const std::string file = entry.path().lexically_relative(kRoot).string();
    if (entry.is_regular_file() && is_source(entry.path())) files.push_back(file);
  }
  return files;
}

TEST(Architecture, ThePlanHasNoRoomTwiceAndNoneThatIsNotThere) {
  std::set<std::string> folders;
  for (const Row& row : plan()) {
    EXPECT_TRUE(folders.insert(row.folder).second) << row.folder << " has two rows";
    EXPECT_TRUE(fs::is_directory(kRoot / row.folder)) << row.folder;
  }
  for (const Row& row : plan()) {
    for (const std::string& other : row.may_include) {
      EXPECT_TRUE(folders.contains(other)) << row.folder << " may include from " << other;
    }
  }
}

TEST(Architecture, IncludesFollowTheArrows) {
  std::map<std::string, int> followed;
  for (const char* top : {"src", "include", "adapters", "examples", "bench", "tests"}) {
    for (const std::string& file : sources_below(top)) {
      const Row* room = room_of(file);
      ASSERT_NE(room, nullptr) << "the plan has no room for " << file;
      for (const std::string& name : includes_of(kRoot / file)) {
        const auto included = included_file(name);
        const Row* other = included ? room_of(*included) : nullptr;
        if (other == nullptr || other == room) continue;
        ++followed[top];
        EXPECT_TRUE(room->may_include.contains(other->folder))
            << file << " includes " << *included << ", which " << room->folder << " must not know";
      }
    }
  }
  for (const char* top : {"src", "adapters", "bench", "tests"}) {
    EXPECT_GT(followed[top], 5) << "looked in the wrong place: " << top;
  }
}

// A room links what it may include, and nothing else.
TEST(Architecture, TheBuildFollowsTheArrows) {
  static const std::regex room_of_build("sealane_room\\((\\w+)([^)]*)\\)");
  static const std::map<std::string, std::string> parts = {{"session", "src/core/session"},
                                                           {"engine", "src/seal"}};
  int rooms = 0;
  for (const auto& folder : fs::directory_iterator(kRoot / "src")) {
    std::ifstream in(folder.path() / "CMakeLists.txt");
    const std::string text(std::istreambuf_iterator<char>(in), {});
    std::smatch match;
    if (!std::regex_search(text, match, room_of_build)) continue;
    ++rooms;
    const Row* room = room_of("src/" + match[1].str() + "/x");
    ASSERT_NE(room, nullptr) << match[1];
    std::istringstream words(match[2]);
    std::string keyword;
    for (std::string word; words >> word;) {
      if (word == "DEPENDS" || word == "LINK" || word == "APART") {
        keyword = word;
      } else if (keyword == "DEPENDS") {
        const auto part = parts.find(word);
        const std::string other = part != parts.end() ? part->second : "src/" + word;
        EXPECT_TRUE(room->may_include.contains(other)) << room->folder << " depends on " << word;
      }
    }
  }
  EXPECT_GT(rooms, 10) << "looked in the wrong place";
}

// The preload lives in other people's processes: what it is made of knows neither network nor TLS.
TEST(Architecture, WhatThePreloadHasKnowsNeitherNetworkNorTls) {
  const std::regex outside("^\\s*#include (\"(comm|transport|core/session)/|<openssl/)");
  for (const char* folder : {"src/base", "src/seal", "src/core", "src/os", "src/serve", "src/watch",
                             "adapters/preload"}) {
    for (const std::string& file : sources_below(folder)) {
      if (is_below(file, "src/core/session") || file == "src/seal/openssl.cc" ||
          file.ends_with("_test.cc")) {
        continue;
      }
      std::ifstream in(kRoot / file);
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

// Namespaces and names of types that a source defines where others can see them.
std::vector<std::string> types_of(const fs::path& path) {
  static const std::regex space("^namespace ([a-z_:]+) \\{");
  static const std::regex type(
      "^(class|struct|union|enum class|enum) ([A-Za-z]+)( final)?( : [^;]*)? \\{");
  std::vector<std::string> found;
  std::string inside;
  bool hidden = false;
  std::ifstream in(path);
  std::smatch words;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("namespace {")) hidden = true;
    if (line.starts_with("}  // namespace")) hidden = false;
    if (std::regex_search(line, words, space)) inside = words[1];
    if (!hidden && std::regex_search(line, words, type))
      found.push_back(inside + "::" + words[2].str());
  }
  return found;
}

// A program that has two types of one name has neither: the linker takes the functions of one for
// those of the other, and says nothing.
TEST(Architecture, ATypeIsDefinedOnce) {
  std::map<std::string, std::string> where;
  for (const char* folder : {"src", "adapters"}) {
    for (const std::string& file : sources_below(folder)) {
      // C's names, of which a program has one library's or the other's.
      if (is_below(file, "src/cuda_abi") || !(file.ends_with(".h") || file.ends_with(".cc"))) {
        continue;
      }
      for (const std::string& type : types_of(kRoot / file)) {
        const auto [first, fresh] = where.emplace(type, file);
        EXPECT_TRUE(fresh) << type << " is in " << first->second << " and in " << file;
      }
    }
  }
  EXPECT_GT(where.size(), 500u) << "types are not found any more";
}

// Every room says what it is for and what it may know.
TEST(Architecture, EveryRoomHasAReadme) {
  for (const Row& row : plan()) {
    const bool is_room =
        fs::path(row.folder).parent_path() == "src" || is_below(row.folder, "adapters");
    if (is_room) EXPECT_TRUE(fs::exists(kRoot / row.folder / "README.md")) << row.folder;
  }
}

TEST(Architecture, EverySourceHasItsLicence) {
  for (const char* top : {"src", "include", "adapters", "tests", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / top)) {
      if (!is_source(entry.path())) continue;
      std::ifstream in(entry.path());
      std::string first;
      std::string second;
      std::getline(in, first);
      std::getline(in, second);
      // C's comments may end there.
      if (second.ends_with(" */")) second.resize(second.size() - 3);
      EXPECT_TRUE(first.ends_with(" SPDX-FileCopyrightText: The Sealane authors")) << entry.path();
      EXPECT_TRUE(second.ends_with(" SPDX-License-Identifier: Apache-2.0")) << entry.path();
    }
  }
}

}  // namespace
