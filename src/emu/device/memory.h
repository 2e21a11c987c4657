// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory of one emulated GPU. A device address is an address of this process that cannot be
// accessed: the range is reserved without any rights, so that dereferencing a device pointer faults
// as it does on a real machine. The bytes live in a second mapping whose address no program learns.
//
// Thread-safe. Translations stay valid memory as long as the object lives, which a GPU's does for
// ever: a device thread that loses a race with a free reads garbage and never crashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "emu/device/virtual_memory.h"

namespace sealane::emu {

class DeviceMemory {
 public:
  struct Block {
    uint64_t address = 0;
    uint64_t bytes = 0;   // as asked for
    uint64_t room = 0;    // to the end of its last granule
    uint64_t owner = 0;   // a context's id; its blocks go with it
    uint64_t serial = 0;  // unlike an address, never used twice
    const void* pool = nullptr;
    bool ending = false;  // its free stands in a stream
    bool mapped = false;  // by virtual memory management: open to these
    uint32_t access = 0;  // ordinals, as bits
  };

  // Reserves address space; fails if the system refuses it.
  static Result<std::unique_ptr<DeviceMemory>> create(uint64_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // The address, or nothing if there is no room. bytes > 0.
  std::optional<uint64_t> allocate(uint64_t bytes, uint64_t owner, const void* pool = nullptr);
  bool release(uint64_t address);  // false: not the start of a live block
  void release_owned(uint64_t owner);

  // In two steps, for a free that takes effect later: from retire() on nobody can free the block
  // again, from recycle() on nobody finds it and its room may be used again.
  std::optional<Block> retire(uint64_t address);
  void recycle(const Block& block);

  // Memory that lives elsewhere, counted here. False: there is no room for it.
  bool take(uint64_t bytes);
  void give_back(uint64_t bytes);

  // What is mapped at addresses beyond ours is found through `there`, which outlives us.
  void look_beyond(const VirtualMemory& there) { beyond_ = &there; }

  bool contains(uint64_t address) const { return address - base_ < bytes_; }
  std::optional<Block> find(uint64_t address) const;  // the live block around an address
  // The same as kernels see it: to the end of its last granule, as on a GPU. Device code loads
  // whole vectors of buffers that hold less.
  std::optional<Block> find_room(uint64_t address) const;

  // The bytes behind a range inside one live block, nullptr if it is not.
  uint8_t* translate(uint64_t address, uint64_t bytes) const;

  uint64_t total_bytes() const { return bytes_; }
  uint64_t used_bytes() const;

 private:
  DeviceMemory(uint64_t base, uint8_t* backing, uint64_t bytes);

  void insert_gap(uint64_t address, uint64_t bytes);
  void recycle_locked(const Block& block);

  const VirtualMemory* beyond_ = nullptr;
  const uint64_t base_;
  uint8_t* const backing_;
  const uint64_t bytes_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Block> blocks_;   // by address
  std::map<uint64_t, uint64_t> gaps_;  // address → bytes
  uint64_t used_ = 0;
  uint64_t serial_ = 0;
};

}  // namespace sealane::emu
