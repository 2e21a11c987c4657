// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/unseen_writers.h"

#include <dirent.h>
#include <fcntl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sealane {
namespace {

// Is there a line that `matches`? Yes, if the file cannot be read.
template <typename Matches>
bool any_line(const char* path, const Matches& matches) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return true;
  char line[4352];
  bool found = false;
  while (!found && std::fgets(line, sizeof line, file) != nullptr) found = matches(line);
  std::fclose(file);
  return found;
}

bool has_pinned_memory() {
  return any_line("/proc/self/status", [](const char* line) {
    return std::strncmp(line, "VmPin:", 6) == 0 && std::strtoull(line + 6, nullptr, 10) != 0;
  });
}

bool has_rings() {
  return any_line("/proc/self/maps", [](const char* line) {
    return std::strstr(line, "/[aio]") != nullptr || std::strstr(line, "[io_uring]") != nullptr;
  });
}

bool has_direct_files() {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return true;
  bool found = false;
  while (const dirent* entry = found ? nullptr : readdir(directory)) {
    const int flags = fcntl(static_cast<int>(std::strtol(entry->d_name, nullptr, 10)), F_GETFL);
    found = flags >= 0 && (flags & O_DIRECT) != 0;
  }
  closedir(directory);
  return found;
}

}  // namespace

bool UnseenWriters::possible() {
  const std::lock_guard lock(mutex_);
  const Instant now = SteadyClock().now();
  if (seen_ || (looked_ && now - when_ < kInterval)) return seen_;
  seen_ = has_direct_files() || has_rings() || has_pinned_memory();
  looked_ = true;
  when_ = now;
  return seen_;
}

}  // namespace sealane
