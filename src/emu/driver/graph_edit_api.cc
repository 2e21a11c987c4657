// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Graphs after they were built: what nodes say about themselves and their neighbours, and how they
// are changed. An executable graph made before keeps what it had (graph_exec_api.cc changes that).

#include <algorithm>

#include "emu/driver/copy_shape.h"
#include "emu/driver/graph.h"

using namespace sealane::emu;

namespace {

struct Edge {
  GraphNode* from;
  GraphNode* to;
};

// Gives as many as there is room for; asked without room, how many there are.
template <typename Item, typename Give>
void give_list(const std::vector<Item>& items, bool room, size_t* count, Give&& give) {
  if (!room) {
    *count = items.size();
    return;
  }
  for (size_t i = 0; i < *count; ++i) give(i, i < items.size() ? &items[i] : nullptr);
  *count = std::min(*count, items.size());
}

void give_nodes(const std::vector<GraphNode*>& found, CUgraphNode* nodes, size_t* count) {
  give_list(found, nodes != nullptr, count, [&](size_t i, GraphNode* const* node) {
    nodes[i] = node != nullptr ? handle_of(*node) : nullptr;
  });
}

CUresult edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
               size_t* count) {
  return guarded([&](Driver& d) {
    const auto graph = d.graphs.find(handle);
    if (!graph || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(graph->mutex);
    std::vector<Edge> all;
    for (const auto& node : graph->nodes) {
      for (GraphNode* before : node->after) all.push_back({before, node.get()});
    }
    give_list(all, from != nullptr, count, [&](size_t i, const Edge* edge) {
      from[i] = edge != nullptr ? handle_of(edge->from) : nullptr;
      to[i] = edge != nullptr ? handle_of(edge->to) : nullptr;
      if (data != nullptr) data[i] = {};
    });
    return CUDA_SUCCESS;
  });
}

// The nodes before one, or those after it.
CUresult neighbours(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count,
                    bool before) {
  return guarded([&](Driver& d) {
    const auto graph = graph_of(d, handle);
    if (!graph || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(graph->mutex);
    GraphNode* const node = node_of(handle);
    std::vector<GraphNode*> found = node->after;
    if (!before) {
      found.clear();
      for (const auto& other : graph->nodes) {
        const auto& after = other->after;
        if (std::find(after.begin(), after.end(), node) != after.end())
          found.push_back(other.get());
      }
    }
    if (nodes != nullptr && data != nullptr) std::fill_n(data, *count, CUgraphEdgeData{});
    give_nodes(found, nodes, count);
    return CUDA_SUCCESS;
  });
}

CUresult remove_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                      size_t count) {
  return guarded([&](Driver& d) {
    const auto graph = d.graphs.find(handle);
    const bool given = count == 0 || (from != nullptr && to != nullptr);
    if (!graph || !given) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(graph->mutex);
    for (size_t i = 0; i < count; ++i) {
      if (!owns(*graph, node_of(to[i]))) return CUDA_ERROR_INVALID_VALUE;
      auto& after = node_of(to[i])->after;
      const auto edge = std::find(after.begin(), after.end(), node_of(from[i]));
      if (edge == after.end()) return CUDA_ERROR_INVALID_VALUE;
      after.erase(edge);
    }
    return CUDA_SUCCESS;
  });
}

CUmemorytype memory_type_of(const CopySide& side) {
  if (side.array != nullptr) return CU_MEMORYTYPE_ARRAY;
  if (side.side == Side::host) return CU_MEMORYTYPE_HOST;
  return side.side == Side::device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
}

void tell_side(const CopySide& side, CUmemorytype& type, uint64_t& pitch, uint64_t& height) {
  type = memory_type_of(side);
  if (side.array != nullptr) return;
  pitch = side.pitch;
  height = side.pitch != 0 ? side.slice / side.pitch : 0;
}

CUDA_MEMCPY3D tell_copy(const CopyOperation& copy) {
  CUDA_MEMCPY3D out{};
  tell_side(copy.from, out.srcMemoryType, out.srcPitch, out.srcHeight);
  tell_side(copy.to, out.dstMemoryType, out.dstPitch, out.dstHeight);
  if (copy.from.array != nullptr) {
    const ArrayPosition at = position_of(copy.from);
    out.srcArray = copy.from.array;
    out.srcXInBytes = at.x, out.srcY = at.y, out.srcZ = at.z;
  } else {
    out.srcHost = reinterpret_cast<const void*>(copy.from.address);
    out.srcDevice = copy.from.address;
  }
  if (copy.to.array != nullptr) {
    const ArrayPosition at = position_of(copy.to);
    out.dstArray = copy.to.array;
    out.dstXInBytes = at.x, out.dstY = at.y, out.dstZ = at.z;
  } else {
    out.dstHost = reinterpret_cast<void*>(copy.to.address);
    out.dstDevice = copy.to.address;
  }
  out.WidthInBytes = copy.width;
  out.Height = copy.height;
  out.Depth = copy.depth;
  return out;
}

// The arguments are the node's own copies, as CUDA says.
void tell_kernel(const LaunchOperation& launch, CUDA_KERNEL_NODE_PARAMS& p) {
  p.func = launch.function;
  p.gridDimX = launch.grid[0], p.gridDimY = launch.grid[1], p.gridDimZ = launch.grid[2];
  p.blockDimX = launch.block[0], p.blockDimY = launch.block[1], p.blockDimZ = launch.block[2];
  p.sharedMemBytes = launch.shared_bytes;
  p.kernelParams = const_cast<void**>(const_cast<const void**>(launch.arguments.pointers()));
  p.extra = nullptr;
}

template <typename Op>
CUresult tell_event(CUgraphNode node, CUevent* out) {
  return with_node<Op>(node, out, [&](Driver&, Op& operation) {
    *out = reinterpret_cast<CUevent>(operation.event.get());
    return CUDA_SUCCESS;
  });
}

template <typename Op>
CUresult change_event(CUgraphNode node, CUevent handle) {
  return with_node<Op>(node, handle, [&](Driver& d, Op& operation) {
    auto event = d.events.find(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    operation.event = std::move(event);
    return CUDA_SUCCESS;
  });
}

}  // namespace

EMU_API cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return edges(graph, from, to, nullptr, count);
}

EMU_API cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                           size_t* count) {
  return edges(graph, from, to, data, count);
}

EMU_API cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return guarded([&](Driver& d) {
    const auto graph = d.graphs.find(handle);
    if (!graph || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(graph->mutex);
    std::vector<GraphNode*> roots;
    for (const auto& node : graph->nodes) {
      if (node->after.empty()) roots.push_back(node.get());
    }
    give_nodes(roots, nodes, count);
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return neighbours(node, nodes, nullptr, count, true);
}

EMU_API cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
                                      size_t* count) {
  return neighbours(node, nodes, data, count, true);
}

EMU_API cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return neighbours(node, nodes, nullptr, count, false);
}

EMU_API cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
                                        size_t* count) {
  return neighbours(node, nodes, data, count, false);
}

EMU_API cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                  size_t count) {
  return remove_edges(graph, from, to, count);
}

EMU_API cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                     const CUgraphEdgeData*, size_t count) {
  return remove_edges(graph, from, to, count);
}

EMU_API cuGraphDestroyNode(CUgraphNode handle) {
  return guarded([&](Driver& d) {
    const std::lock_guard captures(d.capture_mutex);
    const auto graph = graph_of(d, handle);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    forget_captured(d, node_of(handle));
    const std::lock_guard lock(graph->mutex);
    for (const auto& node : graph->nodes) std::erase(node->after, node_of(handle));
    std::erase_if(graph->nodes, [&](const auto& node) { return node.get() == node_of(handle); });
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  return guarded([&](Driver& d) {
    const auto graph = d.graphs.find(clone);
    if (!graph || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(graph->mutex);
    for (const auto& node : graph->nodes) {
      if (node->original != node_of(original) || original == nullptr) continue;
      *out = handle_of(node.get());
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

EMU_API cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* p) {
  return with_node<CopyOperation>(node, p, [&](Driver&, CopyOperation& copy) {
    *p = tell_copy(copy);
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* p) {
  return with_node<CopyOperation>(
      node, p, [&](Driver& d, CopyOperation& copy) { return change_copy(d, *p, copy); });
}

EMU_API cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* p) {
  return with_node<FillOperation>(node, p, [&](Driver&, FillOperation& fill) {
    *p = {fill.address, fill.pitch, fill.value, fill.element_bytes, fill.width, fill.height};
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* p) {
  return with_node<FillOperation>(node, p,
                                  [&](Driver&, FillOperation& fill) { return read_fill(p, fill); });
}

EMU_API cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* p) {
  return with_node<HostOperation>(node, p, [&](Driver&, HostOperation& host) {
    *p = {host.function, host.data};
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* p) {
  return with_node<HostOperation>(node, p, [&](Driver&, HostOperation& host) {
    if (p->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    host = {p->fn, p->userData, nullptr, nullptr};
    return CUDA_SUCCESS;
  });
}

// The first version has no member beyond `extra`: do not touch what is there.
EMU_API cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* p) {
  return with_node<LaunchOperation>(node, p, [&](Driver&, LaunchOperation& launch) {
    tell_kernel(launch, *p);
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* p) {
  return with_node<LaunchOperation>(node, p, [&](Driver&, LaunchOperation& launch) {
    tell_kernel(launch, *p);
    p->kern = nullptr;
    p->ctx = nullptr;
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* p) {
  return with_node<LaunchOperation>(node, p, [&](Driver& d, LaunchOperation& launch) {
    return read_kernel(d, p->func, *p, launch);
  });
}

EMU_API cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* p) {
  return with_node<LaunchOperation>(node, p, [&](Driver& d, LaunchOperation& launch) {
    const auto kernel = reinterpret_cast<CUfunction>(p->kern);
    return read_kernel(d, p->func != nullptr ? p->func : kernel, *p, launch);
  });
}

EMU_API cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return tell_event<RecordOperation>(node, event);
}

EMU_API cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return change_event<RecordOperation>(node, event);
}

EMU_API cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return tell_event<AwaitOperation>(node, event);
}

EMU_API cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return change_event<AwaitOperation>(node, event);
}
