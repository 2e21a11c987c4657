// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a stream can be asked to do, as values: submitted at once, or kept as nodes of a graph and
// submitted at each launch. Addresses are checked when an operation is submitted, not before.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "cuda_abi/cuda_types.h"
#include "emu/device/kernels.h"

namespace sealane::ptx {
struct Kernel;
}

namespace sealane::emu {

struct EventObject;
struct Graph;
class GraphMemory;
struct ModuleObject;

enum class Side : uint8_t { any, host, device };

// One side of a copy, in bytes. pitch: from row to row, slice: from slice to slice.
struct CopySide {
  uint64_t address = 0;
  uint64_t pitch = 0;
  uint64_t slice = 0;
  Side side = Side::any;
  CUarray array = nullptr;  // as the program named it; the address is that of its memory
  uint64_t array_offset = 0;
};

struct CopyOperation {
  CopySide from;
  CopySide to;
  uint64_t width = 0;
  uint64_t height = 1;
  uint64_t depth = 1;

  uint64_t bytes() const { return width * height * depth; }
  static CopyOperation flat(uint64_t to, Side to_side, uint64_t from, Side from_side,
                            uint64_t bytes) {
    CopyOperation copy;
    copy.from = {from, bytes, bytes, from_side};
    copy.to = {to, bytes, bytes, to_side};
    copy.width = bytes;
    return copy;
  }
};

struct FillOperation {
  uint64_t address = 0;
  uint64_t pitch = 0;
  uint32_t value = 0;
  unsigned element_bytes = 1;
  uint64_t width = 0;  // elements
  uint64_t height = 1;
};

struct HostOperation {
  CUhostFn function = nullptr;
  void* data = nullptr;
  CUstreamCallback callback = nullptr;  // instead of function, told the status
  CUstream stream = nullptr;            // for the callback
};

struct LaunchOperation {
  CUfunction function = nullptr;  // as the program named it
  std::shared_ptr<const Kernel> kernel;
  Arguments arguments;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  // Device code, if no host function has the kernel's name.
  std::shared_ptr<ModuleObject> module;
  std::shared_ptr<const std::vector<uint8_t>> parameters;
  std::shared_ptr<const ptx::Kernel> code;  // found when it is submitted to a context
  bool cooperative = false;
  bool host_paid = false;  // another launch of its graph costs the host what the graph does
};

struct RecordOperation {
  std::shared_ptr<EventObject> event;
  bool called = false;  // by the program's thread, which pays for it; else by a graph
};

struct AwaitOperation {
  std::shared_ptr<EventObject> event;
};

// cuStreamWaitValue and cuStreamWriteValue; several run in order.
struct MemoryOperation {
  bool wait = false;
  bool wide = false;  // 64 bits
  unsigned condition = 0;
  uint64_t address = 0;
  uint64_t value = 0;
};
struct MemoryOperations {
  std::vector<MemoryOperation> all;
};

// Of a graph's memory.
struct AllocOperation {
  std::shared_ptr<GraphMemory> memory;
};

// cuMemFreeAsync.
struct FreeOperation {
  uint64_t address = 0;
};

struct NothingOperation {};

using Operation =
    std::variant<NothingOperation, CopyOperation, FillOperation, HostOperation, LaunchOperation,
                 RecordOperation, AwaitOperation, MemoryOperations, AllocOperation, FreeOperation>;

}  // namespace sealane::emu
