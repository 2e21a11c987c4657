// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/trial_directory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/output_file.h"
#include "base/try.h"

namespace sealane::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kAsDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr mode_t kOurs = 0700;  // what a program says is not for everybody
constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t kPrivate = 0600;

Error not_ours(const std::string& name) {
  return usage_error(fmt::format(
      "{} is somebody else's, who could change what is written there: name another directory "
      "with -o",
      name));
}

Result<std::string> whole(const std::string& name) {
  std::error_code error;
  const fs::path path = fs::absolute(name, error);
  if (error) {
    return io_error(fmt::format("cannot tell where {} is: the current directory", name),
                    error.value());
  }
  return (path.has_filename() ? path : path.parent_path()).string();  // "trial/"
}

// A link of ours may lead elsewhere; somebody else's leads where he wants.
Status check_link(const std::string& path, const std::string& name) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0 || !S_ISLNK(found.st_mode)) return {};
  return found.st_uid == geteuid() ? Status() : not_ours(name);
}

Status check_owner(const Descriptor& directory, const std::string& name) {
  struct stat found {};
  if (fstat(directory.get(), &found) != 0) return io_error("cannot look at " + name, errno);
  if (found.st_uid != geteuid()) return not_ours(name);
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return usage_error(fmt::format(
      "{} is a directory that others may write to: chmod go-w, or name another one with -o", name));
}

}  // namespace

Descriptor::~Descriptor() {
  if (ok()) close(number_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Result<TrialDirectory> TrialDirectory::begin(const std::string& name) {
  SEALANE_LET(const std::string path, whole(name));
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);  // mkdir says what is wrong with it
  if (mkdir(path.c_str(), kOurs) != 0 && errno != EEXIST) {
    return io_error(fmt::format("cannot make {}", name), errno);
  }
  SEALANE_LET(TrialDirectory out, open(path, name));
  if (!fs::is_empty(out.path_, error)) {
    return usage_error(fmt::format(
        "{} exists and is not empty: add --resume to go on with the trial in it, or name another "
        "directory with -o",
        name));
  }
  fchmod(out.descriptor_.get(), kOurs);
  return out;
}

Result<TrialDirectory> TrialDirectory::resume(const std::string& name) {
  SEALANE_LET(const std::string path, whole(name));
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return usage_error(fmt::format("--resume: no trial was begun in {}", name));
  }
  return open(path, name);
}

Result<TrialDirectory> TrialDirectory::open(const std::string& path, const std::string& name) {
  SEALANE_TRY(check_link(path, name));
  TrialDirectory out;
  out.descriptor_ = Descriptor(::open(path.c_str(), kAsDirectory));
  if (!out.descriptor_.ok()) return io_error(fmt::format("cannot open {}", name), errno);
  SEALANE_TRY(check_owner(out.descriptor_, name));
  // Held as long as anything of this trial lives, also what ends its last run.
  if (flock(out.descriptor_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return usage_error(fmt::format(
        "another trial is under way in {}: wait for it, or name another directory with -o", name));
  }
  std::error_code error;
  out.path_ = fs::canonical(path, error).string();  // where a link led when it was looked at
  if (error) return io_error(fmt::format("cannot open {}", name), error.value());
  return out;
}

Status TrialDirectory::write(const std::string& file, std::string_view content) const {
  const std::string beside = file + ".new";
  unlinkat(descriptor_.get(), beside.c_str(), 0);  // of a trial that was killed
  int error = 0;
  {
    const Descriptor made(openat(descriptor_.get(), beside.c_str(), kNew, kPrivate));
    error = made.ok() ? write_descriptor(made.get(), content) : errno;
  }
  if (error == 0 &&
      renameat(descriptor_.get(), beside.c_str(), descriptor_.get(), file.c_str()) != 0) {
    error = errno;
  }
  if (error == 0) return {};
  unlinkat(descriptor_.get(), beside.c_str(), 0);
  return io_error(fmt::format("cannot write {}/{}", path_, file), error);
}

Result<Descriptor> TrialDirectory::make_run(const std::string& run) const {
  mkdirat(descriptor_.get(), "runs", kOurs);
  const Descriptor runs(openat(descriptor_.get(), "runs", kAsDirectory | O_NOFOLLOW));
  if (!runs.ok()) return io_error(fmt::format("cannot open {}/runs", path_), errno);
  std::error_code ignored;  // mkdir fails where something is left
  fs::remove_all(fmt::format("{}/runs/{}", path_, run), ignored);
  if (mkdirat(runs.get(), run.c_str(), kOurs) != 0) {
    return io_error(fmt::format("cannot make {}/runs/{}", path_, run), errno);
  }
  Descriptor made(openat(runs.get(), run.c_str(), kAsDirectory | O_NOFOLLOW));
  if (!made.ok()) return io_error(fmt::format("cannot open {}/runs/{}", path_, run), errno);
  return made;
}

Result<Descriptor> new_file(const Descriptor& directory, const char* name) {
  Descriptor made(openat(directory.get(), name, kNew, kPrivate));
  if (!made.ok()) return io_error(fmt::format("cannot write a run's {}", name), errno);
  return made;
}

}  // namespace sealane::cli
