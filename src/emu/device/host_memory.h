// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Host memory the driver knows: pinned allocations and registered ranges. In CC mode pinned memory
// is managed by the driver's kernel side and cannot be guarded by userfaultfd; ours is registered
// with a userfaultfd of its own, so that everybody else's registration is refused.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace sealane::emu {

class HostMemory {
 public:
  struct Range {
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint64_t owner = 0;  // a context's id
    unsigned flags = 0;
    bool registered = false;  // by the program; else allocated by us
    bool managed = false;     // the device's as much as the host's
    // What the device sees of a mapped range in CC mode; see view().
    std::shared_ptr<uint8_t[]> view;
  };

  void* allocate(uint64_t bytes, uint64_t owner, unsigned flags, bool unguardable);
  void* allocate_managed(uint64_t bytes, uint64_t owner, bool unguardable);
  bool release(void* memory);  // false: not the start of an allocation of ours
  bool add_registered(void* memory, uint64_t bytes, uint64_t owner, unsigned flags);
  bool remove_registered(void* memory);
  void release_owned(uint64_t owner);

  std::optional<Range> find(uint64_t address) const;
  bool covers(uint64_t address, uint64_t bytes) const;

  // The bytes a kernel sees at a pinned address. `stale`: a copy made at its first use since the
  // last refresh(), as mapped views are in CC mode; else the memory itself.
  uint8_t* view(uint64_t address, uint64_t bytes, bool stale);

  // The host synchronised: what kernels wrote into views becomes visible, and what they see is
  // fresh.
  void refresh();

  // While a kernel runs, what it found stays memory: a range that is freed lies there empty, views
  // are kept.
  class Use {
   public:
    explicit Use(HostMemory& memory);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    HostMemory& memory_;
  };

 private:
  Range* find_locked(uint64_t address);
  void unmap_locked(std::map<uint64_t, Range>::iterator range);
  void make_unguardable(void* memory, uint64_t bytes);

  mutable std::mutex mutex_;
  std::map<uint64_t, Range> ranges_;
  int userfaultfd_ = -1;
  bool views_ = false;
  unsigned uses_ = 0;
  std::vector<Range> freed_;  // while kernels run
};

// Whether the program may read (and, for a destination, write) these bytes: a copy must fail, not
// crash, on a wild pointer. Checks that the range is mapped and probes its ends.
bool host_range_usable(const void* memory, uint64_t bytes, bool for_writing);

}  // namespace sealane::emu
