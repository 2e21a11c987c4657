// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/shared_units.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"

namespace sealane {
namespace {

constexpr size_t kUnitsPerNode = 4096;

// Only a file of this user's counts: anybody may create one of that name.
Descriptor open_units(const std::string& folder, const char* what) {
  const std::string path = concat(folder, "/sealane-", what, "-", geteuid());
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat about = {};
  const bool ours = file.valid() && fstat(file.get(), &about) == 0 && about.st_uid == geteuid() &&
                    S_ISREG(about.st_mode);
  return ours ? std::move(file) : Descriptor(-1);
}

}  // namespace

SharedUnits::SharedUnits(const std::string& folder, const char* what, size_t node, size_t count)
    : file_(open_units(folder, what)),
      first_(node * kUnitsPerNode),
      count_(std::min(count, kUnitsPerNode)) {}

size_t SharedUnits::want(size_t wanted) {
  if (!file_.valid()) return wanted;
  while (held_.size() > wanted) {
    set(held_.back(), F_UNLCK);
    held_.pop_back();
  }
  for (size_t unit = 0; unit < count_ && held_.size() < wanted; ++unit) {
    const bool ours = std::find(held_.begin(), held_.end(), unit) != held_.end();
    if (!ours && set(unit, F_WRLCK)) held_.push_back(unit);
  }
  return held_.size();
}

bool SharedUnits::set(size_t unit, short lock) {
  struct flock range = {};
  range.l_type = lock;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(first_ + unit);
  range.l_len = 1;
  return fcntl(file_.get(), F_OFD_SETLK, &range) == 0;
}

}  // namespace sealane
