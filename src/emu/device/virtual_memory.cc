// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/device/virtual_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace sealane::emu {
namespace {

constexpr const char* kName = "sealane-emu-gpu-%d";
constexpr int kEmpty = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

std::shared_ptr<MappableMemory> MappableMemory::create(uint64_t bytes, int gpu) {
  char name[64];
  std::snprintf(name, sizeof name, kName, gpu);
  const int file = memfd_create(name, MFD_CLOEXEC);
  if (file < 0) return nullptr;
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    return nullptr;
  }
  return std::shared_ptr<MappableMemory>(new MappableMemory(file, bytes, gpu, false));
}

// The name of the file says whose it is, here and in any other process.
std::shared_ptr<MappableMemory> MappableMemory::open(int descriptor) {
  char link[64];
  char target[128] = "";
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  if (readlink(link, target, sizeof target - 1) <= 0) return nullptr;
  int gpu = -1;
  const char* name = std::strstr(target, "sealane-emu-gpu-");
  struct stat about {};
  if (name == nullptr || std::sscanf(name, kName, &gpu) != 1 || fstat(descriptor, &about) != 0) {
    return nullptr;
  }
  const int file = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (file < 0) return nullptr;
  return std::shared_ptr<MappableMemory>(
      new MappableMemory(file, static_cast<uint64_t>(about.st_size), gpu, true));
}

MappableMemory::~MappableMemory() { close(file_); }

int MappableMemory::duplicate() const { return fcntl(file_, F_DUPFD_CLOEXEC, 0); }

bool VirtualMemory::begin_locked() {
  if (shadow_ != nullptr) return true;
  void* area = mmap(nullptr, kArea, PROT_NONE, kEmpty, -1, 0);
  if (area == MAP_FAILED) return false;
  void* shadow = mmap(nullptr, kArea, PROT_READ | PROT_WRITE, kEmpty, -1, 0);
  if (shadow == MAP_FAILED) {
    munmap(area, kArea);
    return false;
  }
  madvise(shadow, kArea, MADV_DONTFORK);
  madvise(shadow, kArea, MADV_DONTDUMP);
  shadow_ = static_cast<uint8_t*>(shadow);
  base_ = reinterpret_cast<uint64_t>(area);
  return true;
}

uint64_t VirtualMemory::reserve(uint64_t bytes, uint64_t alignment, uint64_t hint) {
  const std::lock_guard lock(mutex_);
  if (!begin_locked() || bytes > kArea) return 0;
  alignment = std::max(alignment, kGranule);
  const uint64_t end = base_ + kArea;
  const auto aligned = [&](uint64_t at) { return (at + alignment - 1) & ~(alignment - 1); };
  const auto free_until = [&](uint64_t at) {
    const auto next = reserved_.lower_bound(at);
    if (next != reserved_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second > at) return at;
    }
    return next == reserved_.end() ? end : next->first;
  };
  if (contains(hint) && hint % alignment == 0 && free_until(hint) - hint >= bytes) {
    reserved_[hint] = bytes;
    return hint;
  }
  uint64_t at = aligned(base_);
  for (const auto& [address, size] : reserved_) {
    if (address >= at && address - at >= bytes) break;
    at = std::max(at, aligned(address + size));
  }
  if (at > end || end - at < bytes) return 0;
  reserved_[at] = bytes;
  return at;
}

bool VirtualMemory::release(uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = reserved_.find(address);
  if (found == reserved_.end() || found->second != bytes) return false;
  const auto mapping = mappings_.lower_bound(address);
  if (mapping != mappings_.end() && mapping->first < address + bytes) return false;
  reserved_.erase(found);
  return true;
}

bool VirtualMemory::map(uint64_t address, uint64_t bytes, std::shared_ptr<MappableMemory> memory,
                        uint64_t offset) {
  const bool fits = offset <= memory->bytes() && bytes <= memory->bytes() - offset;
  const bool even = address % kGranule == 0 && bytes % kGranule == 0 && offset % kGranule == 0;
  if (bytes == 0 || !fits || !even) return false;
  const std::lock_guard lock(mutex_);
  auto room = reserved_.upper_bound(address);
  if (room == reserved_.begin()) return false;
  --room;
  if (address + bytes > room->first + room->second) return false;
  const auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + bytes) return false;
  if (next != mappings_.begin()) {
    const Mapping& before = std::prev(next)->second;
    if (before.address + before.bytes > address) return false;
  }
  void* placed = mmap(shadow(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                      memory->file_, static_cast<off_t>(offset));
  if (placed == MAP_FAILED) return false;
  mappings_[address] = {address, bytes, ++serial_, std::move(memory), 0};
  return true;
}

// work(Mapping&) on every mapping of a range. False, and nothing done: it is not made of whole
// ones.
template <typename Work>
bool VirtualMemory::each_locked(uint64_t address, uint64_t bytes, Work&& work) {
  for (const bool really : {false, true}) {
    uint64_t at = address;
    while (at < address + bytes) {
      const auto found = mappings_.find(at);
      if (found == mappings_.end()) return false;
      at += found->second.bytes;
      if (at > address + bytes) return false;
      if (really) work(found->second);
    }
  }
  return bytes > 0;
}

bool VirtualMemory::unmap(uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!each_locked(address, bytes, [](Mapping&) {})) return false;
  mappings_.erase(mappings_.find(address), mappings_.lower_bound(address + bytes));
  mmap(shadow(address), bytes, PROT_READ | PROT_WRITE, kEmpty | MAP_FIXED, -1, 0);
  return true;
}

bool VirtualMemory::set_access(uint64_t address, uint64_t bytes, int ordinal, bool allowed) {
  const std::lock_guard lock(mutex_);
  const uint32_t bit = uint32_t{1} << ordinal;
  return each_locked(address, bytes, [&](Mapping& mapping) {
    mapping.access = allowed ? mapping.access | bit : mapping.access & ~bit;
  });
}

std::optional<VirtualMemory::Mapping> VirtualMemory::find(uint64_t address) const {
  const std::lock_guard lock(mutex_);
  auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return std::nullopt;
  const Mapping& mapping = std::prev(after)->second;
  if (address - mapping.address >= mapping.bytes) return std::nullopt;
  return mapping;
}

uint8_t* VirtualMemory::translate(uint64_t address, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto at = mappings_.upper_bound(address);
  if (at == mappings_.begin()) return nullptr;
  --at;
  const int gpu = at->second.memory->gpu();
  uint64_t covered = address;
  while (at != mappings_.end() && at->second.address <= covered) {
    const Mapping& mapping = at->second;
    if (mapping.access == 0 || mapping.memory->gpu() != gpu) return nullptr;
    if (covered >= mapping.address + mapping.bytes) return nullptr;
    covered = mapping.address + mapping.bytes;
    if (covered - address >= bytes) return shadow(address);
    ++at;
  }
  return nullptr;
}

}  // namespace sealane::emu
