// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The objects behind CUDA's handles, and the one place that knows them all.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "emu/device/host_memory.h"
#include "emu/driver/context.h"
#include "emu/driver/operation.h"
#include "emu/driver/registry.h"

namespace sealane::emu {

struct GraphNode;
struct Capture;

struct StreamObject {
  std::shared_ptr<Context> context;
  std::shared_ptr<Stream> stream;
  // Guarded by Driver::capture_mutex.
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> capture_tail;  // what the next captured node follows
};

struct EventObject {
  struct Recording {
    Fence fence;
    std::atomic<RealNs> at{0};
  };

  std::shared_ptr<Context> context;
  unsigned flags = 0;
  std::mutex mutex;
  std::shared_ptr<Recording> last;  // nullptr: never recorded
  // Guarded by Driver::capture_mutex: recorded while capturing.
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> capture_tail;

  std::shared_ptr<Recording> recording() {
    const std::lock_guard lock(mutex);
    return last;
  }
};

struct FunctionObject;

// A module or library: an image we do not read beyond looking for names in it.
struct ModuleObject : std::enable_shared_from_this<ModuleObject> {
  std::string image;     // text of PTX or bytes of a cubin; empty: cannot be searched
  bool library = false;  // made by cuLibraryLoad*: lives in no context
  uint64_t owner = 0;    // context id
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<FunctionObject>> functions;

  bool may_define(const std::string& name) const {
    return image.empty() || image.find(name) != std::string::npos;
  }
};

struct FunctionObject {
  std::string name;
  ModuleObject* module = nullptr;
  std::atomic<int> dynamic_shared_bytes{48 << 10};
};

struct PoolObject {
  Gpu* gpu = nullptr;
  bool is_default = false;
  std::atomic<uint64_t> used{0};
  std::atomic<uint64_t> used_high{0};
  std::atomic<uint64_t> threshold{0};
  std::atomic<int> reuse[3] = {1, 1, 1};
};

struct GraphNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Operation operation;
  std::shared_ptr<Graph> child;
  std::vector<GraphNode*> after;
  bool has_successor = false;
};

struct Graph : std::enable_shared_from_this<Graph> {
  std::mutex mutex;
  std::vector<std::unique_ptr<GraphNode>> nodes;  // a node follows those it depends on, unless
                                                  // dependencies were added later
};

struct GraphExec {
  std::vector<Operation> operations;  // in an order that respects every dependency
};

struct Capture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  StreamObject* origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  const void* thread = nullptr;
  uint64_t id = 0;
  bool broken = false;
  std::vector<StreamObject*> streams;
};

struct PrimaryContext {
  std::shared_ptr<Context> context;
  CUcontext handle = nullptr;
  unsigned users = 0;
  unsigned flags = 0;
};

class Driver {
 public:
  std::vector<std::unique_ptr<Gpu>> gpus;
  HostMemory host;
  Registry<Context, CUcontext> contexts;
  Registry<StreamObject, CUstream> streams;
  Registry<EventObject, CUevent> events;
  Registry<ModuleObject, CUmodule> modules;
  Registry<FunctionObject, CUfunction> functions;
  Registry<Graph, CUgraph> graphs;
  Registry<GraphExec, CUgraphExec> execs;
  Registry<PoolObject, CUmemoryPool> pools;

  std::mutex primary_mutex;  // primary contexts, pools of devices
  std::vector<PrimaryContext> primaries;
  std::vector<CUmemoryPool> default_pools;
  std::vector<CUmemoryPool> current_pools;

  std::mutex capture_mutex;  // everything about captures
  std::atomic<int> captures{0};

  // The GPU an address belongs to, nullptr: host memory.
  Gpu* gpu_of(uint64_t address) const {
    for (const auto& gpu : gpus) {
      if (gpu->memory.contains(address)) return gpu.get();
    }
    return nullptr;
  }
  Gpu* gpu_at(CUdevice device) const {
    const bool exists = device >= 0 && static_cast<size_t>(device) < gpus.size();
    return exists ? gpus[static_cast<size_t>(device)].get() : nullptr;
  }
};

// The process's driver once cuInit() succeeded in this very process (a fork's child has none).
Driver* driver();
CUresult start_driver();

}  // namespace sealane::emu
