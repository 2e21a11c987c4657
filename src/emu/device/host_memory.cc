// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/device/host_memory.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/log.h"

namespace sealane::emu {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t pages(uint64_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }

// A userfaultfd that never protects anything: it only occupies the mappings registered with it.
int open_userfaultfd() {
  constexpr int kUserModeOnly = 1;
  const long fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly);
  if (fd < 0) return -1;
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  if (ioctl(static_cast<int>(fd), UFFDIO_API, &api) == 0) return static_cast<int>(fd);
  close(static_cast<int>(fd));
  return -1;
}

// What either side of a view wrote since it was taken or merged gets to the other; of a byte both
// wrote the device's stands. Kernels may run meanwhile: a byte is read once. Not instrumented for
// the same reason.
__attribute__((no_sanitize_thread)) void merge_view(uint8_t* memory, uint8_t* view,
                                                    uint64_t bytes) {
  uint8_t* taken = view + bytes;
  constexpr uint64_t kStep = 256;
  for (uint64_t from = 0; from < bytes; from += kStep) {
    const uint64_t count = bytes - from < kStep ? bytes - from : kStep;
    if (std::memcmp(view + from, taken + from, count) == 0 &&
        std::memcmp(memory + from, taken + from, count) == 0) {
      continue;
    }
    for (uint64_t i = from; i < from + count; ++i) {
      const uint8_t seen = view[i];
      const uint8_t host = memory[i];
      if (seen != taken[i]) {
        memory[i] = taken[i] = seen;
      } else if (host != seen) {
        view[i] = taken[i] = host;
      }
    }
  }
}

bool page_writable(uint64_t page) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14
  static const bool supported = [] {
    int here = 0;
    auto* mine = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(&here) & ~(kPage - 1));
    return madvise(mine, kPage, kPopulateWrite) == 0;
  }();
  return !supported || madvise(reinterpret_cast<void*>(page), kPage, kPopulateWrite) == 0;
}

}  // namespace

void* HostMemory::allocate(uint64_t bytes, uint64_t owner, unsigned flags, bool unguardable) {
  void* memory =
      mmap(nullptr, pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const std::lock_guard lock(mutex_);
  if (unguardable) make_unguardable(memory, pages(bytes));
  const auto address = reinterpret_cast<uint64_t>(memory);
  ranges_[address] = {address, bytes, owner, flags, false, false, nullptr};
  return memory;
}

void* HostMemory::allocate_managed(uint64_t bytes, uint64_t owner, bool unguardable) {
  void* memory = allocate(bytes, owner, 0, unguardable);
  const std::lock_guard lock(mutex_);
  if (memory != nullptr) ranges_[reinterpret_cast<uint64_t>(memory)].managed = true;
  return memory;
}

void HostMemory::make_unguardable(void* memory, uint64_t bytes) {
  constexpr int kRefused = -2;
  if (userfaultfd_ == -1) {
    userfaultfd_ = open_userfaultfd();
    if (userfaultfd_ < 0) {
      userfaultfd_ = kRefused;
      SEALANE_LOG(warn, "emulated GPU: no userfaultfd here, pinned memory stays guardable");
    }
  }
  if (userfaultfd_ < 0) return;
  uffdio_register request{};
  request.range = {reinterpret_cast<uint64_t>(memory), bytes};
  request.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(userfaultfd_, UFFDIO_REGISTER, &request) != 0) {
    SEALANE_LOG(warn, "emulated GPU: a pinned range stays guardable: %s", strerror(errno));
  }
}

bool HostMemory::release(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto range = ranges_.find(reinterpret_cast<uint64_t>(memory));
  if (range == ranges_.end() || range->second.registered) return false;
  unmap_locked(range);
  return true;
}

void HostMemory::unmap_locked(std::map<uint64_t, Range>::iterator range) {
  Range& gone = range->second;
  auto* memory = reinterpret_cast<void*>(gone.address);
  if (uses_ > 0) {
    if (!gone.registered) {
      mmap(memory, pages(gone.bytes), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
    freed_.push_back(std::move(gone));
  } else if (!gone.registered) {
    munmap(memory, pages(gone.bytes));
  }
  ranges_.erase(range);
}

HostMemory::Use::Use(HostMemory& memory) : memory_(memory) {
  const std::lock_guard lock(memory_.mutex_);
  ++memory_.uses_;
}

HostMemory::Use::~Use() {
  const std::lock_guard lock(memory_.mutex_);
  if (--memory_.uses_ > 0) return;
  for (const Range& gone : memory_.freed_) {
    if (!gone.registered) munmap(reinterpret_cast<void*>(gone.address), pages(gone.bytes));
  }
  memory_.freed_.clear();
}

bool HostMemory::add_registered(void* memory, uint64_t bytes, uint64_t owner, unsigned flags) {
  const auto address = reinterpret_cast<uint64_t>(memory);
  const std::lock_guard lock(mutex_);
  const auto after = ranges_.lower_bound(address);
  if (after != ranges_.end() && after->first < address + bytes) return false;
  if (find_locked(address) != nullptr) return false;
  ranges_[address] = {address, bytes, owner, flags, true, false, nullptr};
  return true;
}

bool HostMemory::remove_registered(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto range = ranges_.find(reinterpret_cast<uint64_t>(memory));
  if (range == ranges_.end() || !range->second.registered) return false;
  unmap_locked(range);
  return true;
}

void HostMemory::release_owned(uint64_t owner) {
  const std::lock_guard lock(mutex_);
  for (auto range = ranges_.begin(); range != ranges_.end();) {
    const auto current = range++;
    if (current->second.owner == owner) unmap_locked(current);
  }
}

HostMemory::Range* HostMemory::find_locked(uint64_t address) {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  Range& range = std::prev(after)->second;
  return address - range.address < range.bytes ? &range : nullptr;
}

std::optional<HostMemory::Range> HostMemory::find(uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const Range* range = const_cast<HostMemory*>(this)->find_locked(address);
  if (range == nullptr) return std::nullopt;
  return *range;
}

bool HostMemory::covers(uint64_t address, uint64_t bytes) const {
  const auto range = find(address);
  return range && bytes <= range->bytes - (address - range->address);
}

uint8_t* HostMemory::view(uint64_t address, uint64_t bytes, bool stale) {
  const std::lock_guard lock(mutex_);
  Range* range = find_locked(address);
  if (range == nullptr || bytes > range->bytes - (address - range->address)) return nullptr;
  auto* memory = reinterpret_cast<uint8_t*>(range->address);
  if (!stale || range->managed) return memory + (address - range->address);
  if (!range->view) {
    // Twice: what the device works on, and what it looked like when it was taken.
    range->view.reset(new uint8_t[2 * range->bytes]);
    std::memcpy(range->view.get(), memory, range->bytes);
    std::memcpy(range->view.get() + range->bytes, range->view.get(), range->bytes);
    views_ = true;
  }
  return range->view.get() + (address - range->address);
}

void HostMemory::refresh() {
  const std::lock_guard lock(mutex_);
  if (!views_) return;
  for (auto& [address, range] : ranges_) {
    if (!range.view) continue;
    merge_view(reinterpret_cast<uint8_t*>(address), range.view.get(), range.bytes);
    if (uses_ == 0) range.view.reset();
  }
  views_ = uses_ > 0;
}

bool host_range_usable(const void* memory, uint64_t bytes, bool for_writing) {
  if (bytes == 0) return true;
  const auto first = reinterpret_cast<uint64_t>(memory);
  if (first == 0 || first + bytes < first) return false;
  const uint64_t start = first & ~(kPage - 1);
  const uint64_t length = first + bytes - start;
  if (msync(reinterpret_cast<void*>(start), length, MS_ASYNC) != 0) return false;  // a hole
  uint8_t probe[2];
  iovec local[1] = {{probe, 2}};
  iovec remote[2] = {{reinterpret_cast<void*>(first), 1},
                     {reinterpret_cast<void*>(first + bytes - 1), 1}};
  if (process_vm_readv(getpid(), local, 1, remote, 2, 0) != 2) {
    // Sandboxes may forbid the call itself: then believe the mapping.
    return errno == EPERM || errno == ENOSYS;
  }
  if (!for_writing) return true;
  return page_writable(start) && page_writable((first + bytes - 1) & ~(kPage - 1));
}

}  // namespace sealane::emu
