// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/program_file.h"

#include <elf.h>
#include <endian.h>
#include <fmt/core.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/words.h"

namespace sealane::cli {
namespace {

constexpr int kInterpretersMax = 4;

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

// Of a file in this machine's own format; a program without a loader has no INTERP segment.
bool has_loader(std::ifstream& file, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  file.read(reinterpret_cast<char*>(segments.data()),
            static_cast<std::streamsize>(segments.size() * sizeof(Elf64_Phdr)));
  if (!file) return true;  // the kernel will say what is wrong with it
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

std::string interpreter_of(std::ifstream& file) {
  file.clear();
  file.seekg(0);
  std::string line;
  std::getline(file, line);
  std::istringstream words(line.substr(2));
  std::string interpreter;
  words >> interpreter;
  if (interpreter != "/usr/bin/env") return interpreter;
  std::string named;
  words >> named;
  const auto found = find_program(named);
  return found ? *found : interpreter;
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

std::string why_not_preloadable(const std::string& path) {
  std::string at = path;
  for (int depth = 0; depth < kInterpretersMax; ++depth) {
    if (changes_user(at)) return "it runs as another user than you (set-user-ID or set-group-ID)";
    if (gains_capabilities(at)) return "its file gives it capabilities (setcap)";
    std::ifstream file(at, std::ios::binary);
    Elf64_Ehdr header{};
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    if (std::memcmp(header.e_ident, "#!", 2) == 0) {
      at = interpreter_of(file);
      continue;
    }
    if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
    if (header.e_ident[EI_CLASS] != ELFCLASS64) return "it is not a 64-bit program";
    return has_loader(file, header) ? "" : "it is linked statically";
  }
  return {};
}

}  // namespace sealane::cli
