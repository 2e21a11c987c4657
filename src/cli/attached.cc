// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/attached.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>

#include "base/try.h"

namespace sealane::cli {
namespace {

using nlohmann::json;
using serve::AttachHead;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr auto kPause = std::chrono::milliseconds(2);
constexpr int kDepthMax = 32;  // of lists in lists; what copies and writes JSON recurses

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

std::string read_small(int directory, const char* name, size_t bytes_max) {
  const Descriptor file(openat(directory, name, O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> piece;
  while (file.valid() && text.size() < bytes_max) {
    const ssize_t got = read(file.get(), piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece.data(), static_cast<size_t>(got));
  }
  return text;
}

// The number by which the process knows itself: the innermost of its namespaces'.
pid_t own_number(int process, pid_t pid) {
  const std::string status = read_small(process, "status", 1 << 16);
  const size_t line = status.find("\nNSpid:");
  if (line == std::string::npos) return pid;
  const size_t end = status.find('\n', line + 1);
  const std::string numbers = status.substr(line, end - line);
  return static_cast<pid_t>(strtol(&numbers[numbers.find_last_of("\t :") + 1], nullptr, 10));
}

// Opened only if it is what it seems to be: to open a pipe or a device can do something.
Descriptor open_page(int descriptors, const char* number) {
  std::array<char, 128> target;
  const ssize_t length = readlinkat(descriptors, number, target.data(), target.size());
  const std::string name = fmt::format("/memfd:{}", serve::kAttachFile);
  if (length < 0 ||
      !std::string_view(target.data(), static_cast<size_t>(length)).starts_with(name)) {
    return Descriptor(-1);
  }
  const Descriptor place(openat(descriptors, number, O_PATH | O_CLOEXEC));
  struct stat found {};
  struct statfs system {};
  if (!place.valid() || fstat(place.get(), &found) != 0 || fstatfs(place.get(), &system) != 0 ||
      !S_ISREG(found.st_mode) || system.f_type != TMPFS_MAGIC ||
      found.st_size != static_cast<off_t>(serve::kAttachFileBytes)) {
    return Descriptor(-1);
  }
  Descriptor file(open(fmt::format("/proc/self/fd/{}", place.get()).c_str(), O_RDWR | O_CLOEXEC));
  if (file.valid() && (fcntl(file.get(), F_GET_SEALS) & kSeals) != kSeals) return Descriptor(-1);
  return file;
}

// Null, if it is no answer.
json parse_answer(const std::string& text) {
  bool deep = false;
  const auto bounded = [&](int depth, json::parse_event_t, json&) {
    deep = deep || depth > kDepthMax;
    return !deep;
  };
  json answer = json::parse(text, bounded, false);
  return !deep && answer.is_object() && answer.contains("stats") ? answer : json();
}

std::optional<AttachHead> read_head(int file) {
  std::array<uint8_t, sizeof(AttachHead)> bytes;
  if (pread(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  return serve::parse_attach_head(bytes);
}

// Why there is no page: the process's own mappings know whether the runtime was loaded.
Error explain_absence(int process, pid_t pid, pid_t parent) {
  if (parent != 0) {
    return io_error(fmt::format(
        "process {} is a fork of process {}, and Sealane is off in it: ask that one", pid, parent));
  }
  const std::string maps = read_small(process, "maps", 8 << 20);
  if (maps.empty()) {
    return io_error(fmt::format("there is no process {} any more: it has just ended", pid));
  }
  if (maps.find("libsealane-preload.so") == std::string::npos) {
    return io_error(fmt::format(
        "process {} does not run under Sealane: it has to be started by `sealane run`, with "
        "--emulate also with a part or with something that watches (--enable, --stats)",
        pid));
  }
  return io_error(
      fmt::format("process {} has Sealane but cannot be asked: it has not used the GPU yet, closed "
                  "the file by which it is asked, or was started with SEALANE_ATTACH=0",
                  pid));
}

Error explain_refusal(pid_t pid, int error_number) {
  if (error_number == ENOENT || error_number == ESRCH) {
    return io_error(fmt::format("there is no process {}", pid));
  }
  if (error_number == EACCES || error_number == EPERM) {
    return io_error(fmt::format(
        "process {} is not yours to ask: only its own user and root may look into it", pid));
  }
  return io_error(fmt::format("cannot look at process {}", pid), error_number);
}

}  // namespace

Result<Attached> Attached::find(pid_t pid) {
  // Whatever is found below this directory is of one process, should its number go to another.
  const Descriptor process(
      open(fmt::format("/proc/{}", pid).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!process.valid()) return explain_refusal(pid, errno);
  Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!handle.valid()) return explain_refusal(pid, errno);
  const int list = openat(process.get(), "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (list < 0) return explain_refusal(pid, errno);
  const std::unique_ptr<DIR, CloseDirectory> descriptors(fdopendir(list));
  if (!descriptors) return explain_refusal(pid, errno);
  const pid_t own = own_number(process.get(), pid);
  pid_t parent = 0;
  while (const dirent* entry = readdir(descriptors.get())) {
    Descriptor file = open_page(list, entry->d_name);
    if (!file.valid()) continue;
    const auto head = read_head(file.get());
    if (!head) continue;
    if (head->pid == own) return Attached(pid, std::move(handle), std::move(file), *head);
    parent = head->pid;
  }
  return explain_absence(process.get(), pid, parent);
}

std::string Attached::presence() const { return head_.presence.data(); }

bool Attached::has_ended() const {
  pollfd one{process_.get(), POLLIN, 0};
  return poll(&one, 1, 0) > 0;
}

Result<std::string> Attached::read_answer(uint32_t asked) {
  const auto before = read_head(file_.get());
  if (!before) return peer_error(fmt::format("process {} gave an answer that is none", pid_));
  if (before->answered != asked || before->sequence % 2 != 0) return std::string();
  std::string text(before->bytes, '\0');
  const ssize_t got = pread(file_.get(), text.data(), text.size(), serve::kAttachAnswerAt);
  const auto after = read_head(file_.get());
  const bool torn =
      !after || after->sequence != before->sequence || got != static_cast<ssize_t>(text.size());
  return torn ? std::string() : text;
}

Result<json> Attached::ask(std::chrono::milliseconds patience) {
  const auto now = read_head(file_.get());
  if (!now) return peer_error(fmt::format("process {} gave an answer that is none", pid_));
  const uint32_t asked = now->asked + 1;
  if (pwrite(file_.get(), &asked, sizeof asked, offsetof(AttachHead, asked)) != sizeof asked) {
    return io_error(fmt::format("cannot ask process {}", pid_), errno);
  }
  const auto until = std::chrono::steady_clock::now() + patience;
  while (true) {
    const bool ended = has_ended();  // before the look: what it wrote last is not missed
    SEALANE_LET(auto text, read_answer(asked));
    if (!text.empty()) {
      json answer = parse_answer(text);
      if (!answer.is_null()) return answer;
      return peer_error(fmt::format("process {} gave an answer that is none", pid_));
    }
    if (ended) return peer_error(fmt::format("process {} ended before it answered", pid_));
    if (std::chrono::steady_clock::now() > until) {
      return peer_error(fmt::format(
          "process {} did not answer within {:.1f} s: it answers at its next call to the GPU's "
          "driver, and made none",
          pid_, std::chrono::duration<double>(patience).count()));
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace sealane::cli
