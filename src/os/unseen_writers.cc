// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/unseen_writers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

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

bool starts_with(const char* text, const char* beginning) {
  return std::strncmp(text, beginning, std::strlen(beginning)) == 0;
}

// What the kernel copies to and from memory, by way of the page tables.
bool is_harmless_socket(int file) {
  int domain = 0;
  socklen_t bytes = sizeof domain;
  if (getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) != 0) return false;
  return domain == AF_UNIX || domain == AF_INET || domain == AF_INET6 || domain == AF_NETLINK ||
         domain == AF_VSOCK;
}

bool is_harmless_device(dev_t device, const char* path) {
  constexpr unsigned kMemory = 1;  // of which some are windows to all of it
  constexpr unsigned kTerminals[] = {4, 5};
  constexpr unsigned kPseudoTerminals[] = {136, 143};
  const unsigned major_number = major(device);
  const unsigned minor_number = minor(device);
  if (major_number == kMemory) {  // null, zero, full, random, urandom
    return minor_number == 3 || minor_number == 5 || (minor_number >= 7 && minor_number <= 9);
  }
  if (major_number == kTerminals[0] || major_number == kTerminals[1]) return true;
  if (major_number >= kPseudoTerminals[0] && major_number <= kPseudoTerminals[1]) return true;
  // The GPU's driver: what it pins it was asked to pin by a call that we see.
  return starts_with(path, "/dev/nvidia") || starts_with(path, "/dev/userfaultfd");
}

bool is_harmless_object(const char* path) {
  constexpr const char* kKinds[] = {"[eventfd]",     "[eventpoll]", "[signalfd]", "[timerfd]",
                                    "[userfaultfd]", "[pidfd]",     "inotify",    "[perf_event]"};
  constexpr const char* kPrefix = "anon_inode:";
  if (!starts_with(path, kPrefix)) return false;
  const char* const kind = path + std::strlen(kPrefix);
  return std::any_of(std::begin(kKinds), std::end(kKinds),
                     [&](const char* known) { return std::strcmp(kind, known) == 0; });
}

// A file that is gone by now was harmless, as far as we are concerned.
bool is_harmless(int file, const char* name) {
  const int flags = fcntl(file, F_GETFL);
  struct stat what {};
  if (flags < 0 || fstat(file, &what) != 0) return true;
  if ((flags & O_PATH) != 0) return true;
  if ((flags & O_DIRECT) != 0) return false;
  if (S_ISREG(what.st_mode) || S_ISDIR(what.st_mode) || S_ISFIFO(what.st_mode)) return true;
  if (S_ISSOCK(what.st_mode)) return is_harmless_socket(file);
  char link[64];
  char path[256] = "";
  std::snprintf(link, sizeof link, "/proc/self/fd/%s", name);
  if (readlink(link, path, sizeof path - 1) < 0) return errno == ENOENT;
  if (S_ISCHR(what.st_mode)) return is_harmless_device(what.st_rdev, path);
  return is_harmless_object(path);
}

bool has_files_that_may_write() {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return true;
  bool found = false;
  while (const dirent* entry = found ? nullptr : readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    found = !is_harmless(static_cast<int>(std::strtol(entry->d_name, nullptr, 10)), entry->d_name);
  }
  closedir(directory);
  return found;
}

}  // namespace

bool UnseenWriters::look(Instant now) {
  if (!seen_ && (has_files_that_may_write() || has_rings() || has_pinned_memory())) seen_ = true;
  looked_ = true;
  when_ = now;
  return seen_;
}

bool UnseenWriters::possible() {
  const std::lock_guard lock(mutex_);
  const Instant now = SteadyClock().now();
  return seen_ || (looked_ && now - when_ < kInterval) ? seen() : look(now);
}

bool UnseenWriters::possible_since(Instant when) {
  const std::lock_guard lock(mutex_);
  return seen_ || (looked_ && when_ > when) ? seen() : look(SteadyClock().now());
}

}  // namespace sealane
