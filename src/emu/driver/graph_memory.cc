// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/driver/graph_memory.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace sealane::emu {
namespace {

struct Table {
  struct Level {
    uint64_t now = 0;
    uint64_t high = 0;
    void add(uint64_t bytes) { high = std::max(high, now += bytes); }
  };
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<GraphMemory>> at;
  std::map<int, Level> used;  // by GPU
  std::map<int, Level> reserved;
};

Table& table() {
  static Table& made = *new Table;  // graphs may outlive main()
  return made;
}

}  // namespace

std::shared_ptr<GraphMemory> GraphMemory::allocate(Gpu& gpu, uint64_t bytes) {
  const auto address = gpu.memory.allocate(bytes, 0);
  const auto block = address ? gpu.memory.find(*address) : std::nullopt;
  if (!block) return nullptr;
  std::shared_ptr<GraphMemory> made(new GraphMemory(gpu, *block));
  const std::lock_guard lock(table().mutex);
  table().at[block->address] = made;
  table().reserved[gpu.ordinal].add(bytes);
  return made;
}

std::shared_ptr<GraphMemory> GraphMemory::at(uint64_t address) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().at.find(address);
  return found == table().at.end() ? nullptr : found->second.lock();
}

GraphMemory::~GraphMemory() {
  const std::lock_guard lock(table().mutex);
  table().reserved[gpu_.ordinal].now -= block_.bytes;
  const auto mine = table().at.find(block_.address);
  if (mine != table().at.end() && mine->second.expired()) table().at.erase(mine);
  if (allocated_) {
    table().used[gpu_.ordinal].now -= block_.bytes;
    return;  // an ordinary block from now on
  }
  gpu_.memory.recycle(block_);
}

void GraphMemory::set_allocated(bool allocated) {
  const std::lock_guard lock(table().mutex);
  if (allocated == allocated_) return;
  allocated_ = allocated;
  if (allocated)
    table().used[gpu_.ordinal].add(block_.bytes);
  else
    table().used[gpu_.ordinal].now -= block_.bytes;
}

bool graph_memory_attribute(int ordinal, int attribute, uint64_t& value) {
  if (attribute < 0 || attribute > 3) return false;
  const std::lock_guard lock(table().mutex);
  const Table::Level level = attribute < 2 ? table().used[ordinal] : table().reserved[ordinal];
  value = attribute % 2 == 0 ? level.now : level.high;
  return true;
}

bool reset_graph_memory_high(int ordinal, int attribute) {
  if (attribute != 1 && attribute != 3) return false;
  const std::lock_guard lock(table().mutex);
  Table::Level& level = attribute < 2 ? table().used[ordinal] : table().reserved[ordinal];
  level.high = level.now;
  return true;
}

}  // namespace sealane::emu
