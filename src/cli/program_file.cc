// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/program_file.h"

#include <elf.h>
#include <endian.h>
#include <fmt/core.h>
#include <limits.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "base/words.h"

namespace sealane::cli {
namespace {

constexpr int kInterpretersMax = 4;
constexpr size_t kScriptLineMax = 4096;  // more than the kernel reads

bool runs(const std::string& path) {
  std::error_code ignored;
  return access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, ignored);
}

// A file system may be mounted so that its programs get no more than their user has.
bool is_on_nosuid(const std::string& path) {
  struct statvfs system {};
  return statvfs(path.c_str(), &system) == 0 && (system.f_flag & ST_NOSUID) != 0;
}

// The loader drops what an unprivileged user wants to load into such a program.
bool changes_user(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || is_on_nosuid(path)) return false;
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return false;  // nor does the kernel
  const bool user = (status.st_mode & S_ISUID) != 0 && status.st_uid != getuid();
  const bool group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getgid();
  return user || group;
}

// And into one whose file gives it capabilities (setcap), unless root starts it.
bool gains_capabilities(const std::string& path) {
  if (getuid() == 0 || is_on_nosuid(path)) return false;
  vfs_ns_cap_data found{};
  const ssize_t bytes = getxattr(path.c_str(), "security.capability", &found, sizeof found);
  if (bytes < static_cast<ssize_t>(XATTR_CAPS_SZ_1)) return false;
  return (le32toh(found.magic_etc) & VFS_CAP_FLAGS_EFFECTIVE) != 0 ||
         found.data[0].permitted != 0 ||
         (bytes >= static_cast<ssize_t>(XATTR_CAPS_SZ_2) && found.data[1].permitted != 0);
}

// The loader a file in this machine's own format asks for; nothing if it is linked statically.
std::optional<std::string> loader_of(std::ifstream& file, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  file.read(reinterpret_cast<char*>(segments.data()),
            static_cast<std::streamsize>(segments.size() * sizeof(Elf64_Phdr)));
  if (!file) return "";  // the kernel will say what is wrong with it
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_INTERP) continue;
    std::array<char, PATH_MAX> name{};
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    file.read(name.data(),
              static_cast<std::streamsize>(std::min<uint64_t>(segment.p_filesz, name.size() - 1)));
    return name.data();
  }
  return std::nullopt;
}

// Is it the loader itself (ld.so PROGRAM)? That loads what any program asks for; told by our own.
bool is_loader(const std::string& path) {
  std::ifstream self("/proc/self/exe", std::ios::binary);
  Elf64_Ehdr header{};
  self.read(reinterpret_cast<char*>(&header), sizeof header);
  const auto ours = loader_of(self, header);
  std::error_code failed;
  return ours && std::filesystem::equivalent(*ours, path, failed);
}

// As the kernel reads a script's line, to which a carriage return is a letter as any other.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  constexpr std::string_view kBlanks = " \t";
  for (size_t at = 0; (at = line.find_first_not_of(kBlanks, at)) != line.npos;) {
    const size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// Whom env(1) becomes: behind its options (-S PROGRAM, -Su NAME PROGRAM) and variables. Empty:
// nobody.
std::string named_to_env(const std::vector<std::string>& words) {
  constexpr std::string_view kSplit = "--split-string=";
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& option = words[i];
    std::string_view word = option;
    if (option.starts_with(kSplit)) {
      word.remove_prefix(kSplit.size());
    } else if (option.starts_with("-")) {
      const size_t split = option.starts_with("--") ? option.npos : option.find('S');
      word.remove_prefix(split == option.npos ? option.size() : split + 1);
      if (option.ends_with('u') || option.ends_with('C')) ++i;  // -u NAME, -C DIRECTORY
    }
    if (!word.empty() && word.find('=') == word.npos) return std::string(word);
  }
  return {};
}

// Of a script: its interpreter, and, where that is env(1), the one it finds. Else nothing.
std::vector<std::string> named_by_script(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, kScriptLineMax> start{};
  file.read(start.data(), start.size());
  const std::string_view line(start.data(), static_cast<size_t>(file.gcount()));
  if (!line.starts_with("#!")) return {};
  const auto words = words_of(line.substr(2, line.find('\n') - 2));
  if (words.empty()) return {};
  const std::string& interpreter = words[0];
  if (std::filesystem::path(interpreter).filename() != "env") return {interpreter};
  const auto found = find_program(named_to_env(words));
  if (!found) return {interpreter};
  return {interpreter, *found};
}

}  // namespace

Result<std::string> find_program(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    if (runs(program)) return program;
    if (access(program.c_str(), X_OK) != 0) return io_error("cannot run " + program, errno);
    return io_error(fmt::format("cannot run {}: it is a directory", program));
  }
  const char* path = std::getenv("PATH");
  for (const std::string& directory : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    std::string candidate = (directory.empty() ? "." : directory) + "/" + program;
    if (!program.empty() && runs(candidate)) return candidate;
  }
  return io_error(fmt::format("cannot run {}: it is not in PATH", program));
}

std::vector<std::string> interpreters_of(const std::string& path) {
  std::vector<std::string> all;
  std::vector<std::string> named = named_by_script(path);
  for (int depth = 0; depth < kInterpretersMax && !named.empty(); ++depth) {
    all.insert(all.end(), named.begin(), named.end());
    named = named_by_script(all.back());
  }
  return all;
}

Status check_interpreters(const std::string& path) {
  for (const std::string& one : interpreters_of(path)) {
    if (runs(one)) continue;
    const std::string what = fmt::format("cannot run {}: its interpreter {}", path, one);
    if (access(one.c_str(), X_OK) != 0) return io_error(what, errno);
    return io_error(what + " is a directory");
  }
  return {};
}

std::vector<std::string> places_of_library(const std::string& name) {
  if (name.find('/') != std::string::npos) return {name};
  std::vector<std::string> places;
  const char* path = std::getenv("LD_LIBRARY_PATH");
  for (const std::string& directory : split(path == nullptr ? "" : path, ':')) {
    places.push_back((directory.empty() ? "." : directory) + "/" + name);
  }
  return places;
}

std::string why_not_preloadable(const std::string& path) {
  std::vector<std::string> all = interpreters_of(path);
  all.insert(all.begin(), path);
  for (const std::string& one : all) {
    if (changes_user(one)) return "it runs as another user than you (set-user-ID or set-group-ID)";
    if (gains_capabilities(one)) return "its file gives it capabilities (setcap)";
  }
  std::ifstream file(all.back(), std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "it is not a 64-bit program";
  const bool loaded = loader_of(file, header).has_value() || is_loader(all.back());
  return loaded ? "" : "it is linked statically";
}

}  // namespace sealane::cli
