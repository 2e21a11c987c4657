// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/bytes.h"
#include "base/try.h"
#include "cli/checkup.h"
#include "os/page_guard.h"

namespace sealane::cli {
namespace {

constexpr char kArea[] = "Page guards";
constexpr uint64_t kTrialBytes = 64_KiB;

class TrialMemory {
 public:
  TrialMemory(int flags, int file)
      : data_(mmap(nullptr, kTrialBytes, PROT_READ | PROT_WRITE, flags, file, 0)) {}
  ~TrialMemory() {
    if (valid()) munmap(data_, kTrialBytes);
  }
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;

  bool valid() const { return data_ != MAP_FAILED; }
  uint8_t* data() const { return static_cast<uint8_t*>(data_); }
  Range range() const { return {reinterpret_cast<uint64_t>(data_), kTrialBytes}; }

 private:
  void* data_;
};

// A byte written by the program itself, and one by the kernel on its behalf.
void write_as_program(const TrialMemory& memory) {
  *const_cast<volatile uint8_t*>(memory.data()) = 1;
}

Status write_as_kernel(const TrialMemory& memory) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return io_error("cannot make a pipe", errno);
  const Descriptor reader(ends[0]);
  const Descriptor writer(ends[1]);
  if (write(writer.get(), "x", 1) != 1) return io_error("cannot write to a pipe", errno);
  if (read(reader.get(), memory.data(), 1) != 1) return io_error("read(2) fails", errno);
  return {};
}

Status expect_written(const PageGuards& guards, const TrialMemory& memory, bool expected) {
  SEALANE_LET(const auto written, guards.written(memory.range()));
  if (written == expected) return {};
  return internal_error(expected ? "a write was not noticed" : "a write was noticed without one");
}

Status try_guard(const PageGuards& guards, const TrialMemory& memory) {
  SEALANE_TRY(guards.arm(memory.range()));
  SEALANE_TRY(expect_written(guards, memory, false));
  write_as_program(memory);
  SEALANE_TRY(expect_written(guards, memory, true));
  SEALANE_TRY(guards.arm(memory.range()));
  SEALANE_TRY(write_as_kernel(memory));
  SEALANE_TRY(expect_written(guards, memory, true));
  return guards.disarm(memory.range());
}

Finding warn(std::string name, std::string detail, std::string advice) {
  return {kArea, std::move(name), Verdict::warn, std::move(detail), std::move(advice)};
}

Finding guarded(std::string name, const PageGuards& guards, const TrialMemory& memory) {
  const Status status = try_guard(guards, memory);
  if (status) {
    return {kArea, std::move(name), Verdict::ok, "guarded: writes are noticed, by system calls too",
            ""};
  }
  return warn(std::move(name), status.error().message,
              "Records sealed ahead from this memory need a keyed digest to tell if it changed: "
              "safe, but slower. Linux 6.7 or later has guards that work.");
}

Finding try_private(const PageGuards& guards) {
  const TrialMemory memory(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (!memory.valid()) return warn("private memory", "cannot be mapped", "Free some memory.");
  return guarded("private memory", guards, memory);
}

Finding try_locked(const PageGuards& guards) {
  const TrialMemory memory(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (!memory.valid() || mlock(memory.data(), kTrialBytes) != 0) {
    return warn("locked memory", fmt::format("{} KiB cannot be locked", kTrialBytes >> 10),
                "Raise the memory-lock limit (see below).");
  }
  return guarded("locked memory", guards, memory);
}

// Memory with a second view must be refused. Guarding it would miss writes, so that is a failure.
Finding refused(std::string name, const PageGuards& guards, const TrialMemory& memory,
                std::string_view why) {
  if (!memory.valid()) return warn(std::move(name), "cannot be mapped", "Free some memory.");
  if (guards.arm(memory.range())) {
    return {kArea, std::move(name), Verdict::fail,
            "guarded, though writes from elsewhere would not be noticed",
            "Do not use this build; report it with the output of uname -a."};
  }
  return {kArea, std::move(name), Verdict::ok,
          fmt::format("not guarded, on purpose: {}; a keyed digest has to tell instead", why), ""};
}

Finding try_shared(const PageGuards& guards) {
  const Descriptor file(memfd_create("sealane-doctor", MFD_CLOEXEC));
  if (!file.valid() || ftruncate(file.get(), kTrialBytes) != 0) {
    return warn("shared memory", "cannot be made", "Free some memory.");
  }
  const TrialMemory memory(MAP_SHARED, file.get());
  return refused("shared memory", guards, memory, "another process could write to it unnoticed");
}

Finding try_file(const PageGuards& guards) {
  std::error_code ignored;
  const auto directory = std::filesystem::temp_directory_path(ignored);
  std::string name = (directory / "sealane-doctor.XXXXXX").string();
  const Descriptor file(mkostemp(name.data(), O_CLOEXEC));
  if (!file.valid()) {
    return warn("file mapping", "not tried: no temporary file can be made",
                "Set TMPDIR to a directory that can be written.");
  }
  unlink(name.c_str());
  if (ftruncate(file.get(), kTrialBytes) != 0) {
    return warn("file mapping", "not tried: the temporary directory is full", "Make some room.");
  }
  const TrialMemory memory(MAP_PRIVATE, file.get());
  return refused("file mapping", guards, memory, "writes to the file would go unnoticed");
}

}  // namespace

std::vector<Finding> try_page_guards() {
  const auto guards = PageGuards::open();
  if (!guards) {
    return {warn("all memory", guards.error().message,
                 "Use Linux 6.7 or later and, in a container, a seccomp profile that allows "
                 "userfaultfd. Without guards a keyed digest has to tell if memory changed: safe, "
                 "but slower.")};
  }
  return {try_private(*guards), try_locked(*guards), try_shared(*guards), try_file(*guards)};
}

}  // namespace sealane::cli
