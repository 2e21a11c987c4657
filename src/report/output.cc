// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "report/output.h"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

namespace sealane::report {
namespace {

Status write_all(int descriptor, std::string_view content, const std::string& name) {
  while (!content.empty()) {
    const ssize_t written = write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error("cannot write " + name, errno);
    content.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

// A temporary file in the directory of `path`, so that the rename stays on one file system.
struct Temporary {
  std::string name;
  int descriptor = -1;
};

Result<Temporary> open_temporary(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return io_error("cannot write " + path, EISDIR);
  }
  std::string pattern = path + ".XXXXXX";
  const int descriptor = mkostemp(pattern.data(), O_CLOEXEC);
  if (descriptor < 0) return io_error("cannot write " + path, errno);
  return Temporary{std::move(pattern), descriptor};
}

// Devices and pipes (/dev/null, /dev/stdout) cannot be replaced by a rename.
bool is_special(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

Status write_special(const std::string& path, const std::string& content) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return io_error("cannot write " + path, errno);
  Status status = write_all(descriptor, content, path);
  close(descriptor);
  return status;
}

}  // namespace

Status write_file(const std::string& path, const std::string& content) {
  if (path == "-") {
    std::fflush(stdout);
    return write_all(STDOUT_FILENO, content, "standard output");
  }
  if (is_special(path)) return write_special(path, content);
  auto temporary = open_temporary(path);
  if (!temporary) return temporary.error();
  Status status = write_all(temporary->descriptor, content, path);
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(temporary->descriptor, 0666 & ~mask);
  if (close(temporary->descriptor) != 0 && status) status = io_error("cannot write " + path, errno);
  if (status && std::rename(temporary->name.c_str(), path.c_str()) != 0) {
    status = io_error("cannot write " + path, errno);
  }
  if (!status) unlink(temporary->name.c_str());
  return status;
}

Status check_writable(const std::string& path) {
  if (path == "-") return {};
  if (is_special(path)) {
    if (access(path.c_str(), W_OK) == 0) return {};
    return io_error("cannot write " + path, errno);
  }
  auto temporary = open_temporary(path);
  if (!temporary) return temporary.error();
  close(temporary->descriptor);
  unlink(temporary->name.c_str());
  return {};
}

Status write_json(const std::string& path, const nlohmann::json& value) {
  return write_file(path, value.dump(2) + "\n");
}

}  // namespace sealane::report
