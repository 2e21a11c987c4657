// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Executable graphs changed in place: one node's parameters, or all of them from a graph of the
// same shape. A launch that was made before keeps what it had. And the objects of a program that
// live as long as its graphs.

#include "emu/driver/copy_shape.h"
#include "emu/driver/graph.h"

using namespace sealane::emu;

namespace {

// A step keeps what it costs the host when its parameters change.
CUresult change_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* p,
                       CUfunction function) {
  return with_step<LaunchOperation>(exec, node, p, [&](Driver& d, LaunchOperation& launch) {
    LaunchOperation made;
    const CUresult read = read_kernel(d, function, *p, made);
    if (read != CUDA_SUCCESS) return read;
    made.host_paid = launch.host_paid;
    launch = std::move(made);
    return CUDA_SUCCESS;
  });
}

template <typename Op>
CUresult change_event(CUgraphExec exec, CUgraphNode node, CUevent handle) {
  return with_step<Op>(exec, node, handle, [&](Driver& d, Op& operation) {
    auto event = d.events.find(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    operation.event = std::move(event);
    return CUDA_SUCCESS;
  });
}

struct Difference {
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  CUgraphNode node = nullptr;
};

Difference compare(const std::vector<GraphExec::Step>& now,
                   const std::vector<GraphExec::Step>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i == now.size() || now[i].after != wanted[i].after) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, handle_of(wanted[i].node)};
    }
    if (now[i].type != wanted[i].type) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, handle_of(wanted[i].node)};
    }
  }
  if (now.size() != wanted.size()) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr};
  return {};
}

CUresult update(CUgraphExec handle, CUgraph graph_handle, Difference& found) {
  return guarded([&](Driver& d) {
    const auto exec = d.execs.find(handle);
    const auto graph = d.graphs.find(graph_handle);
    found = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr};
    if (!exec || !graph) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphExec::Step> wanted;
    if (!flatten(*graph, wanted)) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(exec->mutex);
    found = compare(exec->steps, wanted);
    if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (size_t i = 0; i < wanted.size(); ++i) {
      exec->steps[i].operation = std::move(wanted[i].operation);
    }
    charge_once(exec->steps);
    return CUDA_SUCCESS;
  });
}

// work(UserObject&)
template <typename Work>
CUresult with_object(CUuserObject handle, unsigned count, Work&& work) {
  return guarded([&](Driver& d) {
    const auto object = d.user_objects.find(handle);
    if (!object || count == 0) return CUDA_ERROR_INVALID_VALUE;
    work(object);
    if (object->references.load() == 0) d.user_objects.remove(handle);
    return CUDA_SUCCESS;
  });
}

}  // namespace

EMU_API cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                       const CUDA_KERNEL_NODE_PARAMS* p) {
  return change_kernel(exec, node, p, p != nullptr ? p->func : nullptr);
}

EMU_API cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                          const CUDA_KERNEL_NODE_PARAMS* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto kernel = reinterpret_cast<CUfunction>(p->kern);
  return change_kernel(exec, node, p, p->func != nullptr ? p->func : kernel);
}

EMU_API cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* p,
                                       CUcontext) {
  return with_step<CopyOperation>(
      exec, node, p, [&](Driver& d, CopyOperation& copy) { return change_copy(d, *p, copy); });
}

EMU_API cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                       const CUDA_MEMSET_NODE_PARAMS* p, CUcontext) {
  return with_step<FillOperation>(exec, node, p,
                                  [&](Driver&, FillOperation& fill) { return read_fill(p, fill); });
}

EMU_API cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                     const CUDA_HOST_NODE_PARAMS* p) {
  return with_step<HostOperation>(exec, node, p, [&](Driver&, HostOperation& host) {
    if (p->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    host = {p->fn, p->userData, nullptr, nullptr};
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return change_event<RecordOperation>(exec, node, event);
}

EMU_API cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return change_event<AwaitOperation>(exec, node, event);
}

EMU_API cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node, unsigned enabled) {
  return guarded([&](Driver& d) {
    const auto exec = d.execs.find(handle);
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(exec->mutex);
    GraphExec::Step* step = exec->find(node_of(node));
    const bool can = step != nullptr && step->type <= CU_GRAPH_NODE_TYPE_MEMSET;
    if (!can) return CUDA_ERROR_INVALID_VALUE;
    step->enabled = enabled != 0;
    charge_once(exec->steps);
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node, unsigned* enabled) {
  return guarded([&](Driver& d) {
    const auto exec = d.execs.find(handle);
    if (!exec || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(exec->mutex);
    const GraphExec::Step* step = exec->find(node_of(node));
    if (step == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *enabled = step->enabled ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  return guarded([&](Driver& d) {
    const auto exec = d.execs.find(handle);
    if (!exec || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                          CUgraphExecUpdateResult* result) {
  Difference found;
  const CUresult updated = update(exec, graph, found);
  if (error_node != nullptr) *error_node = found.node;
  if (result != nullptr) *result = found.result;
  return updated;
}

EMU_API cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  Difference found;
  const CUresult updated = update(exec, graph, found);
  if (info != nullptr) *info = {found.result, found.node, nullptr};
  return updated;
}

EMU_API cuUserObjectCreate(CUuserObject* out, void* data, CUhostFn destroy, unsigned count,
                           unsigned flags) {
  return guarded([&](Driver& d) {
    constexpr unsigned kNoDestructorSync = 1;  // must be asked for: there is no other way
    const bool sane = out != nullptr && destroy != nullptr && count > 0;
    if (!sane || flags != kNoDestructorSync) return CUDA_ERROR_INVALID_VALUE;
    auto object = std::make_shared<UserObject>();
    object->data = data;
    object->destroy = destroy;
    object->references = count;
    *out = d.user_objects.add(std::move(object));
    return CUDA_SUCCESS;
  });
}

EMU_API cuUserObjectRetain(CUuserObject handle, unsigned count) {
  return with_object(handle, count,
                     [&](const auto& object) { object->references.fetch_add(count); });
}

EMU_API cuUserObjectRelease(CUuserObject handle, unsigned count) {
  return with_object(handle, count, [&](const auto& object) { object->release(count); });
}

EMU_API cuGraphRetainUserObject(CUgraph handle, CUuserObject object_handle, unsigned count,
                                unsigned flags) {
  return guarded([&](Driver& d) {
    constexpr unsigned kMove = 1;  // the caller's references become the graph's
    const auto graph = d.graphs.find(handle);
    const auto object = d.user_objects.find(object_handle);
    if (!graph || !object || count == 0 || flags > kMove) return CUDA_ERROR_INVALID_VALUE;
    if (flags != kMove) object->references.fetch_add(count);
    const std::lock_guard lock(graph->mutex);
    for (unsigned i = 0; i < count; ++i) graph->held.emplace_back(object);
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphReleaseUserObject(CUgraph handle, CUuserObject object_handle, unsigned count) {
  return guarded([&](Driver& d) {
    const auto graph = d.graphs.find(handle);
    const auto object = d.user_objects.find(object_handle);
    if (!graph || !object || count == 0) return CUDA_ERROR_INVALID_VALUE;
    std::vector<UserReference> gone;  // destroyed when the lock is released
    const std::lock_guard lock(graph->mutex);
    for (size_t i = graph->held.size(); i > 0 && gone.size() < count; --i) {
      if (graph->held[i - 1].object() != object.get()) continue;
      gone.push_back(std::move(graph->held[i - 1]));
      graph->held.erase(graph->held.begin() + static_cast<ptrdiff_t>(i - 1));
    }
    return gone.size() == count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
