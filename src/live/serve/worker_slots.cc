// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "live/serve/worker_slots.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"

namespace sealane::serve {
namespace {

constexpr size_t kSlotsPerNode = 4096;

// Only a file of this user's counts: anybody may create one of that name.
Descriptor open_slots(const std::string& folder) {
  const std::string path = concat(folder, "/sealane-workers-", geteuid());
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat about = {};
  const bool ours = file.valid() && fstat(file.get(), &about) == 0 && about.st_uid == geteuid() &&
                    S_ISREG(about.st_mode);
  return ours ? std::move(file) : Descriptor(-1);
}

}  // namespace

WorkerSlots::WorkerSlots(const std::string& folder, size_t node, size_t count)
    : file_(open_slots(folder)), first_(node * kSlotsPerNode), count_(count) {}

size_t WorkerSlots::want(size_t wanted) {
  if (!file_.valid()) return wanted;
  while (held_.size() > wanted) {
    unlock(held_.back());
    held_.pop_back();
  }
  for (size_t slot = 0; slot < count_ && held_.size() < wanted; ++slot) {
    const bool ours = std::find(held_.begin(), held_.end(), slot) != held_.end();
    if (!ours && lock(slot)) held_.push_back(slot);
  }
  return held_.size();
}

bool WorkerSlots::lock(size_t slot) {
  struct flock range = {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(first_ + slot);
  range.l_len = 1;
  return fcntl(file_.get(), F_OFD_SETLK, &range) == 0;
}

void WorkerSlots::unlock(size_t slot) {
  struct flock range = {};
  range.l_type = F_UNLCK;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(first_ + slot);
  range.l_len = 1;
  fcntl(file_.get(), F_OFD_SETLK, &range);
}

}  // namespace sealane::serve
