// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Virtual memory management: device addresses that a program reserves, and memory it maps there.
// An address is one of this process that cannot be accessed, as all device addresses are
// (memory.h); the bytes are a memfd for each allocation, mapped at the same place of a second area,
// so that neighbouring mappings are neighbours for the device too. A file descriptor of an
// allocation can be handed to another process.
//
// Thread-safe. An unmapped place of the second area is ordinary empty memory: a device thread that
// loses a race with an unmap reads garbage and never crashes.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace sealane::emu {

// Memory without an address. Counted against its GPU by whoever made it.
class MappableMemory {
 public:
  // nullptr: the system has no such memory.
  static std::shared_ptr<MappableMemory> create(uint64_t bytes, int gpu);
  // From somebody's descriptor, which stays his. nullptr: it is none of ours.
  static std::shared_ptr<MappableMemory> open(int descriptor);
  ~MappableMemory();
  MappableMemory(const MappableMemory&) = delete;
  MappableMemory& operator=(const MappableMemory&) = delete;

  int duplicate() const;  // a new descriptor, -1: none to be had
  uint64_t bytes() const { return bytes_; }
  int gpu() const { return gpu_; }  // the machine's number of it
  bool imported() const { return imported_; }

  std::atomic<unsigned> handles{1};  // the program's references

 private:
  friend class VirtualMemory;
  MappableMemory(int file, uint64_t bytes, int gpu, bool imported)
      : file_(file), bytes_(bytes), gpu_(gpu), imported_(imported) {}

  const int file_;
  const uint64_t bytes_;
  const int gpu_;
  const bool imported_;
};

class VirtualMemory {
 public:
  static constexpr uint64_t kGranule = 2 << 20;

  struct Mapping {
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint64_t serial = 0;
    std::shared_ptr<MappableMemory> memory;
    uint32_t access = 0;  // ordinals that may use it, as bits
  };

  // 0: no room, or no address space to be had.
  uint64_t reserve(uint64_t bytes, uint64_t alignment, uint64_t hint);
  bool release(uint64_t address, uint64_t bytes);  // false: not a reservation, or not empty

  bool map(uint64_t address, uint64_t bytes, std::shared_ptr<MappableMemory> memory,
           uint64_t offset);
  // False: the range does not end where mappings do.
  bool unmap(uint64_t address, uint64_t bytes);
  bool set_access(uint64_t address, uint64_t bytes, int ordinal, bool allowed);

  bool contains(uint64_t address) const {
    const uint64_t base = base_.load();
    return address >= base && address - base < kArea;
  }
  std::optional<Mapping> find(uint64_t address) const;

  // The bytes behind a range, nullptr if a part of it is not mapped, or is nobody's to use.
  uint8_t* translate(uint64_t address, uint64_t bytes) const;

 private:
  static constexpr uint64_t kArea = uint64_t{1} << 40;

  bool begin_locked();
  uint8_t* shadow(uint64_t address) const { return shadow_ + (address - base_.load()); }
  template <typename Work>
  bool each_locked(uint64_t address, uint64_t bytes, Work&& work);

  mutable std::mutex mutex_;
  std::atomic<uint64_t> base_{~uint64_t{0}};  // nothing is behind it until something is reserved
  uint8_t* shadow_ = nullptr;
  std::map<uint64_t, uint64_t> reserved_;  // address → bytes
  std::map<uint64_t, Mapping> mappings_;   // by address
  uint64_t serial_ = uint64_t{1} << 63;    // apart from those of ordinary memory
};

}  // namespace sealane::emu
