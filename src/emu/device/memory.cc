// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/device/memory.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/bytes.h"

namespace sealane::emu {
namespace {

constexpr uint64_t kGranule = 512;  // CUDA aligns allocations at least this well
constexpr uint64_t kWorthReturning = 1_MiB;

uint64_t rounded(uint64_t bytes) { return (bytes + kGranule - 1) & ~(kGranule - 1); }

}  // namespace

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::create(uint64_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* reserved = mmap(nullptr, bytes, PROT_NONE, kFlags, -1, 0);
  if (reserved == MAP_FAILED) return io_error("cannot reserve device addresses", errno);
  void* backing = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (backing == MAP_FAILED) return io_error("cannot reserve device memory", errno);
  madvise(backing, bytes, MADV_DONTFORK);
  madvise(backing, bytes, MADV_DONTDUMP);
  madvise(backing, bytes, MADV_HUGEPAGE);
  return std::unique_ptr<DeviceMemory>(new DeviceMemory(reinterpret_cast<uint64_t>(reserved),
                                                        static_cast<uint8_t*>(backing), bytes));
}

DeviceMemory::DeviceMemory(uint64_t base, uint8_t* backing, uint64_t bytes)
    : base_(base), backing_(backing), bytes_(bytes) {
  gaps_[base] = bytes;
}

DeviceMemory::~DeviceMemory() {
  munmap(reinterpret_cast<void*>(base_), bytes_);
  munmap(backing_, bytes_);
}

std::optional<uint64_t> DeviceMemory::allocate(uint64_t bytes, uint64_t owner, const void* pool) {
  if (bytes > bytes_) return std::nullopt;
  const uint64_t needed = rounded(bytes);
  const std::lock_guard lock(mutex_);
  if (needed > bytes_ - used_) return std::nullopt;
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    const auto [address, room] = *gap;
    if (room < needed) continue;
    gaps_.erase(gap);
    if (room > needed) gaps_[address + needed] = room - needed;
    blocks_[address] = {address, bytes, needed, owner, ++serial_, pool, false, false, 0};
    used_ += needed;
    return address;
  }
  return std::nullopt;
}

bool DeviceMemory::release(uint64_t address) {
  const auto block = retire(address);
  if (block) recycle(*block);
  return block.has_value();
}

std::optional<DeviceMemory::Block> DeviceMemory::retire(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || found->second.ending) return std::nullopt;
  found->second.ending = true;
  return found->second;
}

void DeviceMemory::recycle(const Block& block) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(block.address);
  // Its context may have ended meanwhile, and taken it along.
  if (found == blocks_.end() || found->second.serial != block.serial) return;
  blocks_.erase(found);
  recycle_locked(block);
}

void DeviceMemory::release_owned(uint64_t owner) {
  const std::lock_guard lock(mutex_);
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    if (block->second.owner != owner) {
      ++block;
      continue;
    }
    recycle_locked(block->second);
    block = blocks_.erase(block);
  }
}

void DeviceMemory::recycle_locked(const Block& block) {
  const uint64_t bytes = block.room;
  used_ -= bytes;
  insert_gap(block.address, bytes);
  if (bytes < kWorthReturning) return;
  // Only pages wholly inside the freed block: its neighbours may share the first and the last.
  constexpr uint64_t kPage = 4096;
  const uint64_t first = (block.address - base_ + kPage - 1) & ~(kPage - 1);
  const uint64_t last = (block.address - base_ + bytes) & ~(kPage - 1);
  if (last > first) madvise(backing_ + first, last - first, MADV_DONTNEED);
}

void DeviceMemory::insert_gap(uint64_t address, uint64_t bytes) {
  const auto gap = gaps_.emplace(address, bytes).first;
  const auto next = std::next(gap);
  if (next != gaps_.end() && gap->first + gap->second == next->first) {
    gap->second += next->second;
    gaps_.erase(next);
  }
  if (gap != gaps_.begin()) {
    const auto previous = std::prev(gap);
    if (previous->first + previous->second == gap->first) {
      previous->second += gap->second;
      gaps_.erase(gap);
    }
  }
}

bool DeviceMemory::take(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > bytes_ - used_) return false;
  used_ += bytes;
  return true;
}

void DeviceMemory::give_back(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  used_ -= bytes;
}

std::optional<DeviceMemory::Block> DeviceMemory::find(uint64_t address) const {
  auto block = find_room(address);
  if (block && address - block->address >= block->bytes) block.reset();
  return block;
}

std::optional<DeviceMemory::Block> DeviceMemory::find_room(uint64_t address) const {
  if (!contains(address)) {
    const auto there = beyond_ != nullptr ? beyond_->find(address) : std::nullopt;
    if (!there) return std::nullopt;
    return Block{there->address, there->bytes, there->bytes, 0, there->serial, nullptr,
                 false,          true,         there->access};
  }
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return std::nullopt;
  const Block& block = std::prev(after)->second;
  if (address - block.address >= block.room) return std::nullopt;
  return block;
}

uint8_t* DeviceMemory::translate(uint64_t address, uint64_t bytes) const {
  if (!contains(address)) {
    return beyond_ != nullptr ? beyond_->translate(address, bytes) : nullptr;
  }
  const auto block = find(address);
  if (!block || bytes > block->bytes - (address - block->address)) return nullptr;
  return backing_ + (address - base_);
}

uint64_t DeviceMemory::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace sealane::emu
