// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which addresses are what: plain device allocations of the program (the only device memory a
// lane's context can reach), pinned memory, and staging memory of ours for bytes that must be kept
// after a call returned.
//
// Staging memory is private: locked if the system lets us, left out of core dumps and of forked
// children, wiped before it is used for something else or given back; bounded by an option.
//
// Thread-safe. Looking up takes a shared lock and a few comparisons; nothing here calls the driver.
#pragma once

#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "core/copy.h"
#include "serve/slot_budget.h"

namespace sealane::serve {

// Non-overlapping ranges with something known of each.
template <typename What>
class RangeMap {
 public:
  void add(Range range, What what) {
    const std::unique_lock lock(mutex_);
    ranges_[range.address] = {range, what};
  }
  struct Entry {
    Range range;
    What what;
  };
  // Like add(), unless it overlaps another.
  bool add_apart(Range range, What what) {
    const std::unique_lock lock(mutex_);
    if (any_within(range)) return false;
    ranges_[range.address] = {range, what};
    return true;
  }
  std::optional<Entry> remove(uint64_t address) {
    const std::unique_lock lock(mutex_);
    const auto found = ranges_.find(address);
    if (found == ranges_.end()) return std::nullopt;
    const Entry entry = found->second;
    ranges_.erase(found);
    return entry;
  }
  // The range that holds this address.
  std::optional<Entry> find(uint64_t address) const {
    const std::shared_lock lock(mutex_);
    auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return std::nullopt;
    const Entry& entry = (--after)->second;
    if (address >= entry.range.end()) return std::nullopt;
    return entry;
  }
  bool overlaps(const Range& range) const {
    const std::shared_lock lock(mutex_);
    return any_within(range);
  }
  // Is `predicate` true of any that overlaps this one?
  template <typename Predicate>
  bool any_overlapping(const Range& range, Predicate&& predicate) const {
    const std::shared_lock lock(mutex_);
    for (auto at = ranges_.lower_bound(range.end()); at != ranges_.begin();) {
      const Entry& entry = (--at)->second;
      if (!entry.range.overlaps(range)) return false;
      if (predicate(entry.what)) return true;
    }
    return false;
  }
  template <typename Visit>
  void each(Visit&& visit) const {
    const std::shared_lock lock(mutex_);
    for (const auto& pair : ranges_) visit(pair.second);
  }
  template <typename Predicate>
  std::vector<Entry> remove_if(Predicate&& predicate) {
    const std::unique_lock lock(mutex_);
    std::vector<Entry> gone;
    std::erase_if(ranges_, [&](const auto& pair) {
      if (!predicate(pair.second)) return false;
      gone.push_back(pair.second);
      return true;
    });
    return gone;
  }

 private:
  bool any_within(const Range& range) const {
    const auto after = ranges_.lower_bound(range.end());
    return after != ranges_.begin() && std::prev(after)->second.range.overlaps(range);
  }

  mutable std::shared_mutex mutex_;
  std::map<uint64_t, Entry> ranges_;
};

struct DeviceBlock {
  int device = 0;
  const void* context = nullptr;  // whose it is
};
struct HostBlock {
  bool ours = false;        // memory we gave the program, not the driver's
  bool registered = false;  // the program's own memory, registered with us
  unsigned flags = 0;
  const void* context = nullptr;  // whose it is
};

// Memory of the program that may be unmapped, or never was there: these fail, they do not fault.
bool read_memory(const void* from, void* to, uint64_t bytes);
bool write_memory(const void* from, void* to, uint64_t bytes);
// Could all of it be read, or read and written? It is in memory then, as what is pinned is. (Linux
// before 5.14 cannot be asked whether it may be written, and is believed.)
enum class Access : uint8_t { read, write };
bool is_usable(const void* memory, uint64_t bytes, Access access);

class Staging {
 public:
  // What is required to be locked is not to be had where it cannot be and the system swaps.
  enum class Locking : uint8_t { tried, required };
  enum Content : uint8_t { wiped, keep };

  // `budget`, if not null, bounds what several of them have together; it outlives them. Such memory
  // is in huge pages, if there are any and it is not too little for that.
  explicit Staging(uint64_t bytes_max, Locking locking = Locking::tried,
                   SlotBudget* budget = nullptr)
      : bytes_max_(bytes_max), locking_(locking), budget_(budget) {}
  void* take(uint64_t bytes);  // nullptr: no room
  void give(void* memory, Content content = wiped);
  void close();  // nothing more is to be had; what is not taken goes back to the system, and later
                 // what is given

 private:
  // What is mapped together. Pieces of one size are cut from it; it goes back as a whole.
  struct Chunk {
    void* memory;
    uint64_t bytes;
    size_t taken;
  };
  struct Piece {
    void* memory;
    uint64_t bytes;  // a power of two
    uint64_t used;
    bool taken;
    Chunk* chunk;
  };
  uint64_t chunk_bytes(uint64_t piece) const;
  bool grow(uint64_t piece);
  bool admit(uint64_t bytes);
  bool unmap_idle();
  void unmap(std::list<Chunk>::iterator chunk);

  const uint64_t bytes_max_;
  const Locking locking_;
  SlotBudget* const budget_;
  std::mutex mutex_;
  bool closed_ = false;
  uint64_t mapped_ = 0;
  std::list<Chunk> chunks_;
  std::vector<Piece> pieces_;
};

}  // namespace sealane::serve
