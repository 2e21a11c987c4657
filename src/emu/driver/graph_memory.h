// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory of graphs' allocation nodes. It has its address from the moment the node is made, as in
// CUDA, and its bytes too; it is "allocated" from a launch of the node until it is freed, by a node
// or by the program. It goes when nothing that was made of the node exists any more, unless a
// launch left it to the program.
//
// Thread-safe.
#pragma once

#include <memory>

#include "cuda_abi/cuda_types.h"
#include "emu/device/gpu.h"

namespace sealane::emu {

class GraphMemory {
 public:
  // nullptr: there is no room.
  static std::shared_ptr<GraphMemory> allocate(Gpu& gpu, uint64_t bytes);
  // nullptr: no graph's memory begins there.
  static std::shared_ptr<GraphMemory> at(uint64_t address);
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  uint64_t address() const { return block_.address; }
  uint64_t bytes() const { return block_.bytes; }
  int ordinal() const { return gpu_.ordinal; }
  void set_allocated(bool allocated);

 private:
  GraphMemory(Gpu& gpu, const DeviceMemory::Block& block) : gpu_(gpu), block_(block) {}

  Gpu& gpu_;
  const DeviceMemory::Block block_;
  bool allocated_ = false;  // guarded by the table's mutex
};

// CU_GRAPH_MEM_ATTR_*: 0 used, 1 most used, 2 reserved, 3 most reserved.
bool graph_memory_attribute(int ordinal, int attribute, uint64_t& value);
bool reset_graph_memory_high(int ordinal, int attribute);

}  // namespace sealane::emu
