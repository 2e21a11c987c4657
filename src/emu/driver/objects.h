// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The objects behind CUDA's handles, and the one place that knows them all.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "emu/device/host_memory.h"
#include "emu/driver/context.h"
#include "emu/driver/device_code.h"
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

// Texts that become one module (cuLink*), and the cubin they became.
struct LinkObject {
  std::mutex mutex;
  std::vector<std::string> texts;
  std::string cubin;
  std::vector<CUjit_option> options;  // buffers for messages among them
  void** values = nullptr;
};

// A module or library: its PTX if it has any, else an image that is only looked through for names.
struct ModuleObject : std::enable_shared_from_this<ModuleObject> {
  std::string image;          // bytes of a cubin without PTX; empty: cannot be searched
  bool machine_code = false;  // is all there is
  std::shared_ptr<const ptx::Module> code;
  bool library = false;  // made by cuLibraryLoad*: lives in no context
  uint64_t owner = 0;    // context id
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<FunctionObject>> functions;

  std::map<uint64_t, std::shared_ptr<LoadedCode>> loaded;  // by context id

  bool may_define(const std::string& name) const;
  // The code in a context, loaded at first use.
  CUresult in(Context& context, std::shared_ptr<LoadedCode>& out);
};

struct FunctionObject {
  std::string name;
  ModuleObject* module = nullptr;
  std::atomic<int> dynamic_shared_bytes{48 << 10};
  std::shared_ptr<const Kernel> described;  // parameters of device code
};

struct PoolObject {
  Gpu* gpu = nullptr;
  bool is_default = false;
  std::atomic<uint64_t> used{0};
  std::atomic<uint64_t> used_high{0};
  std::atomic<uint64_t> threshold{0};
  std::atomic<int> reuse[3] = {1, 1, 1};
  std::atomic<uint32_t> peers{0};  // ordinals of other GPUs that may use it, as bits

  bool open_to(int ordinal) const {
    return ordinal == gpu->ordinal || (peers.load() >> ordinal & 1) != 0;
  }
};

struct ArrayObject {
  CUDA_ARRAY3D_DESCRIPTOR described{};
  uint64_t owner = 0;  // context id
  uint64_t address = 0;
  uint64_t element_bytes = 0;
  uint64_t pitch = 0;

  uint64_t row_bytes() const { return described.Width * element_bytes; }
  uint64_t rows() const { return std::max<uint64_t>(described.Height, 1); }
  uint64_t slices() const { return std::max<uint64_t>(described.Depth, 1); }
};

struct GraphNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Operation operation;
  std::shared_ptr<Graph> child;
  std::vector<GraphNode*> after;
  bool has_successor = false;
  const GraphNode* original = nullptr;  // what it is a clone of
};

// Something of the program's that lives as long as graphs need it.
struct UserObject {
  void* data = nullptr;
  CUhostFn destroy = nullptr;
  std::atomic<unsigned> references{0};

  void release(unsigned count) {
    if (references.fetch_sub(count) == count) destroy(data);
  }
};

// One reference to a user object.
class UserReference {
 public:
  explicit UserReference(std::shared_ptr<UserObject> object) : object_(std::move(object)) {}
  UserReference(const UserReference& other) : object_(other.object_) {
    if (object_) ++object_->references;
  }
  UserReference(UserReference&&) = default;
  UserReference& operator=(UserReference other) {
    std::swap(object_, other.object_);
    return *this;
  }
  ~UserReference() {
    if (object_) object_->release(1);
  }
  const UserObject* object() const { return object_.get(); }

 private:
  std::shared_ptr<UserObject> object_;
};

struct Graph : std::enable_shared_from_this<Graph> {
  std::mutex mutex;
  std::vector<UserReference> held;
  std::vector<std::unique_ptr<GraphNode>> nodes;  // a node follows those it depends on, unless
                                                  // dependencies were added later
};

struct GraphExec {
  struct Step {
    Operation operation;
    const GraphNode* node = nullptr;  // a name: the node may be gone
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    std::vector<size_t> after;  // earlier steps
    bool enabled = true;
  };

  std::mutex mutex;
  std::vector<Step> steps;  // in an order that respects every dependency
  std::vector<UserReference> held;
  unsigned long long flags = 0;

  Step* find(const GraphNode* node) {
    for (Step& step : steps) {
      if (step.node == node) return &step;
    }
    return nullptr;
  }
};

struct Capture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  StreamObject* origin = nullptr;  // none: it has ended
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  const void* thread = nullptr;
  uint64_t id = 0;
  bool broken = false;
  bool begun_by_program = false;  // the graph was there before
  std::vector<StreamObject*> streams;
  std::vector<GraphNode*> left;  // where streams that are gone had come to
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
  Registry<LinkObject, CUlinkState> links;
  Registry<Graph, CUgraph> graphs;
  Registry<GraphExec, CUgraphExec> execs;
  Registry<PoolObject, CUmemoryPool> pools;
  Registry<UserObject, CUuserObject> user_objects;
  Registry<ArrayObject, CUarray> arrays;
  VirtualMemory virtual_memory;
  Registry<MappableMemory, CUmemGenericAllocationHandle> mappable;

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
    return virtual_memory.contains(address) ? gpu_mapped_at(address) : nullptr;
  }
  // The GPU whose memory is mapped there; an address that is only reserved is the first one's,
  // which knows nothing of it.
  Gpu* gpu_mapped_at(uint64_t address) const {
    const auto mapping = virtual_memory.find(address);
    for (const auto& gpu : gpus) {
      if (!mapping || gpu->index == mapping->memory->gpu()) return gpu.get();
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
