// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/trial_mask.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <new>
#include <string_view>
#include <utility>

#include "bench/scratch.h"

namespace sealane::cli {
namespace {

// Of the processor's time, for one line and one expression. Where the tries only grow with the
// square of a line's length, the longest takes about a second.
constexpr double kLimitS = 5;
constexpr int kSliceMs = 20;

// Where the other process is.
struct Place {
  std::atomic<size_t> line{0};
  std::atomic<size_t> mask{0};
};

[[noreturn]] void apply(const Masks& masks, const std::string& text, Place& place, int to) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    const std::string out = masks.apply(text, [&](size_t line, size_t mask) {
      place.mask = mask;
      place.line = line;
    });
    for (std::string_view rest = out; !rest.empty();) {
      const ssize_t written = write(to, rest.data(), rest.size());
      if (written < 0 && errno != EINTR) _exit(1);
      if (written > 0) rest.remove_prefix(static_cast<size_t>(written));
    }
  } catch (const std::exception&) {  // std::regex gives up
    _exit(1);
  }
  _exit(0);
}

double processor_seconds(pid_t process) {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

int end(pid_t process, bool at_once) {
  if (at_once) kill(process, SIGKILL);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Error cannot_apply(const Masks& masks, const Place& place, size_t lines) {
  return usage_error(fmt::format(
      "--mask: '{}' does not come to an end on line {} of the program's output: there are too many "
      "ways to match it; do not repeat what repeats itself",
      masks.expression(place.mask), lines + place.line + 1));
}

// Until it has said everything, or takes too long.
Result<std::string> read_all(int from, pid_t process, const Masks& masks, const Place& place,
                             size_t lines) {
  std::string out;
  std::array<char, 1 << 16> piece;
  std::pair<size_t, size_t> tried;
  double began_s = 0;
  while (true) {
    pollfd entry = {from, POLLIN, 0};
    if (poll(&entry, 1, kSliceMs) > 0) {
      const ssize_t count = read(from, piece.data(), piece.size());
      if (count > 0) {
        out.append(piece.data(), static_cast<size_t>(count));
      } else if (count == 0) {
        return out;
      } else if (errno != EINTR) {
        return io_error("cannot read what was masked", errno);
      }
      continue;
    }
    if (bench::interrupted()) return io_error("interrupted");
    const double now_s = processor_seconds(process);
    if (const std::pair now(place.line.load(), place.mask.load()); now != tried) {
      tried = now;
      began_s = now_s;
    }
    if (now_s - began_s > kLimitS) return cannot_apply(masks, place, lines);
  }
}

}  // namespace

Result<std::string> apply_within_limit(const Masks& masks, const std::string& text, size_t lines) {
  if (text.empty()) return text;
  void* shared =
      mmap(nullptr, sizeof(Place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return io_error("cannot mask the program's output", errno);
  Place& place = *new (shared) Place;
  int ends[2] = {-1, -1};
  const pid_t process = pipe(ends) == 0 ? fork() : -1;
  if (process == 0) apply(masks, text, place, ends[1]);
  const int error = errno;
  close(ends[1]);
  Result<std::string> out = process > 0 ? read_all(ends[0], process, masks, place, lines)
                                        : io_error("cannot mask the program's output", error);
  close(ends[0]);
  if (process > 0) {
    const int status = end(process, !out);
    const bool fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (out && !fine) out = cannot_apply(masks, place, lines);
  }
  munmap(shared, sizeof(Place));
  return out;
}

}  // namespace sealane::cli
