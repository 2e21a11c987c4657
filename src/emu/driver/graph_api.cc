// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Graphs of copies, fills, host functions and kernels. A launch submits the nodes to the stream one
// after the other in an order that respects every dependency. It costs the host one launch, however
// many kernels there are (docs/emulator.md, "Time").

#include <algorithm>
#include <map>

#include "emu/driver/copy_shape.h"
#include "emu/driver/graph.h"
#include "emu/driver/launch.h"

using namespace sealane::emu;

namespace sealane::emu {

bool owns(const Graph& graph, const GraphNode* node) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const auto& mine) { return mine.get() == node; });
}

std::shared_ptr<Graph> graph_of(Driver& d, CUgraphNode handle) {
  for (const auto& graph : d.graphs.all()) {
    const std::lock_guard lock(graph->mutex);
    if (owns(*graph, node_of(handle))) return graph;
  }
  return nullptr;
}

bool flatten(Graph& graph, std::vector<GraphExec::Step>& out) {
  const std::lock_guard lock(graph.mutex);
  std::map<const GraphNode*, int> state;    // 1: being visited, 2: done
  std::map<const GraphNode*, size_t> last;  // the step after which a node is done
  const auto visit = [&](auto&& self, GraphNode* n) -> bool {
    if (state[n] != 0) return state[n] == 2;
    state[n] = 1;
    for (GraphNode* before : n->after) {
      if (!self(self, before)) return false;
    }
    state[n] = 2;
    if (n->child) {
      if (!flatten(*n->child, out)) return false;
    } else {
      GraphExec::Step step{n->operation, n, n->type, {}, true};
      for (const GraphNode* before : n->after) {
        if (last.count(before) != 0) step.after.push_back(last[before]);
      }
      out.push_back(std::move(step));
    }
    if (!out.empty()) last[n] = out.size() - 1;
    return true;
  };
  return std::all_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const auto& n) { return visit(visit, n.get()); });
}

void charge_once(std::vector<GraphExec::Step>& steps) {
  LaunchOperation* last = nullptr;
  for (GraphExec::Step& step : steps) {
    auto* const launch = std::get_if<LaunchOperation>(&step.operation);
    if (launch == nullptr || !step.enabled) continue;
    launch->host_paid = true;
    last = launch;
  }
  if (last != nullptr) last->host_paid = false;
}

CUresult add_to_graph(Driver& d, CUgraphNode* out, CUgraph handle, const CUgraphNode* after,
                      size_t count, GraphNode made) {
  const auto graph = d.graphs.find(handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr || (count > 0 && after == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(graph->mutex);
  for (size_t i = 0; i < count; ++i) {
    if (!owns(*graph, node_of(after[i]))) return CUDA_ERROR_INVALID_VALUE;
    made.after.push_back(node_of(after[i]));
  }
  graph->nodes.push_back(std::make_unique<GraphNode>(std::move(made)));
  *out = reinterpret_cast<CUgraphNode>(graph->nodes.back().get());
  return CUDA_SUCCESS;
}

CUresult read_kernel(Driver& d, CUfunction function, const CUDA_KERNEL_NODE_PARAMS& p,
                     LaunchOperation& out) {
  const unsigned grid[3] = {p.gridDimX, p.gridDimY, p.gridDimZ};
  const unsigned block[3] = {p.blockDimX, p.blockDimY, p.blockDimZ};
  return make_launch(d, function, grid, block, p.sharedMemBytes, p.kernelParams, p.extra, out);
}

CUresult read_fill(const CUDA_MEMSET_NODE_PARAMS* p, FillOperation& out) {
  const bool sane =
      p != nullptr && (p->elementSize == 1 || p->elementSize == 2 || p->elementSize == 4);
  if (!sane) return CUDA_ERROR_INVALID_VALUE;
  out = {p->dst, p->pitch, p->value, p->elementSize, p->width, p->height};
  return CUDA_SUCCESS;
}

}  // namespace sealane::emu

namespace {

// Its children have been graphs of their own since somebody asked for them.
void forget_children(Driver& d, Graph& graph) {
  for (const auto& node : graph.nodes) {
    if (node->child && d.graphs.remove(reinterpret_cast<CUgraph>(node->child.get()))) {
      forget_children(d, *node->child);
    }
  }
}

CUresult add(Driver& d, CUgraphNode* out, CUgraph handle, const CUgraphNode* after, size_t count,
             GraphNode made) {
  return add_to_graph(d, out, handle, after, count, std::move(made));
}

GraphNode node(CUgraphNodeType type, Operation operation) {
  GraphNode made;
  made.type = type;
  made.operation = std::move(operation);
  return made;
}

std::shared_ptr<Graph> clone(Graph& original) {
  auto copy = std::make_shared<Graph>();
  std::map<const GraphNode*, GraphNode*> twin;
  const std::lock_guard lock(original.mutex);
  copy->held = original.held;
  for (const auto& n : original.nodes) {
    copy->nodes.push_back(std::make_unique<GraphNode>(*n));
    copy->nodes.back()->original = n.get();
    twin[n.get()] = copy->nodes.back().get();
  }
  for (const auto& n : copy->nodes) {
    for (GraphNode*& before : n->after) before = twin[before];
  }
  return copy;
}

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags = 0) {
  return guarded([&](Driver& d) {
    const auto graph = d.graphs.find(handle);
    if (!graph || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto exec = std::make_shared<GraphExec>();
    if (!flatten(*graph, exec->steps)) return CUDA_ERROR_INVALID_VALUE;
    charge_once(exec->steps);
    exec->flags = flags;
    {
      const std::lock_guard lock(graph->mutex);
      exec->held = graph->held;
    }
    *out = d.execs.add(std::move(exec));
    return CUDA_SUCCESS;
  });
}

CUresult instantiate_with(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult made = instantiate(out, graph, params->flags);
  params->hErrNode_out = nullptr;
  params->result_out =
      made == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return made;
}

CUresult launch(CUgraphExec handle, CUstream stream, DefaultStream mode) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    const auto exec = d.execs.find(handle);
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Operation> operations;
    {
      const std::lock_guard lock(exec->mutex);
      for (const GraphExec::Step& step : exec->steps) {
        if (step.enabled) operations.push_back(step.operation);
      }
    }
    for (Operation& operation : operations) {
      const CUresult result = submit(d, s, std::move(operation), false);
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  });
}

CUresult check_exec(CUgraphExec handle) {
  return guarded(
      [&](Driver& d) { return d.execs.find(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; });
}

CUresult add_kernel(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                    CUfunction function, const CUDA_KERNEL_NODE_PARAMS& p) {
  return guarded([&](Driver& d) {
    LaunchOperation operation;
    const CUresult made = read_kernel(d, function, p, operation);
    if (made != CUDA_SUCCESS) return made;
    return add(d, out, graph, after, count, node(CU_GRAPH_NODE_TYPE_KERNEL, std::move(operation)));
  });
}

CUresult add_event(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                   CUevent handle, bool record) {
  return guarded([&](Driver& d) {
    const auto event = d.events.find(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    return add(d, out, graph, after, count,
               record ? node(CU_GRAPH_NODE_TYPE_EVENT_RECORD, RecordOperation{event})
                      : node(CU_GRAPH_NODE_TYPE_WAIT_EVENT, AwaitOperation{event}));
  });
}

CUresult add_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return guarded([&](Driver& d) {
    const auto graph = d.graphs.find(handle);
    if (!graph || (count > 0 && (from == nullptr || to == nullptr)))
      return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(graph->mutex);
    for (size_t i = 0; i < count; ++i) {
      if (!owns(*graph, node_of(from[i])) || !owns(*graph, node_of(to[i]))) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      node_of(to[i])->after.push_back(node_of(from[i]));
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace

EMU_API cuGraphCreate(CUgraph* graph, unsigned flags) {
  return guarded([&](Driver& d) {
    if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *graph = d.graphs.add(std::make_shared<Graph>());
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphDestroy(CUgraph graph) {
  return guarded([&](Driver& d) {
    const auto gone = d.graphs.remove(graph);
    if (!gone) return CUDA_ERROR_INVALID_VALUE;
    forget_children(d, *gone);
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphClone(CUgraph* out, CUgraph original) {
  return guarded([&](Driver& d) {
    const auto graph = d.graphs.find(original);
    if (!graph || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = d.graphs.add(clone(*graph));
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                             size_t count, const CUDA_MEMCPY3D* shape, CUcontext) {
  return guarded([&](Driver& d) {
    if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CopyOperation copy;
    const CUresult read = read_shape(d, *shape, copy);
    if (read != CUDA_SUCCESS) return read;
    return add(d, out, graph, after, count, node(CU_GRAPH_NODE_TYPE_MEMCPY, copy));
  });
}

EMU_API cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                             size_t count, const CUDA_MEMSET_NODE_PARAMS* p, CUcontext) {
  return guarded([&](Driver& d) {
    FillOperation fill;
    const CUresult read = read_fill(p, fill);
    if (read != CUDA_SUCCESS) return read;
    return add(d, out, graph, after, count, node(CU_GRAPH_NODE_TYPE_MEMSET, fill));
  });
}

EMU_API cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                           const CUDA_HOST_NODE_PARAMS* p) {
  return guarded([&](Driver& d) {
    if (p == nullptr || p->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add(d, out, graph, after, count,
               node(CU_GRAPH_NODE_TYPE_HOST, HostOperation{p->fn, p->userData, nullptr, nullptr}));
  });
}

// The first version has no member beyond `extra`: do not look there.
EMU_API cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                             size_t count, const CUDA_KERNEL_NODE_PARAMS* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_kernel(out, graph, after, count, p->func, *p);
}

EMU_API cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                size_t count, const CUDA_KERNEL_NODE_PARAMS* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUfunction function = p->func != nullptr ? p->func : reinterpret_cast<CUfunction>(p->kern);
  return add_kernel(out, graph, after, count, function, *p);
}

EMU_API cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                            size_t count) {
  return guarded([&](Driver& d) {
    return add(d, out, graph, after, count, node(CU_GRAPH_NODE_TYPE_EMPTY, NothingOperation{}));
  });
}

EMU_API cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                 size_t count, CUgraph child) {
  return guarded([&](Driver& d) {
    const auto inner = d.graphs.find(child);
    if (!inner || child == graph) return CUDA_ERROR_INVALID_VALUE;
    GraphNode made = node(CU_GRAPH_NODE_TYPE_GRAPH, NothingOperation{});
    made.child = clone(*inner);
    return add(d, out, graph, after, count, std::move(made));
  });
}

EMU_API cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                  size_t count, CUevent event) {
  return add_event(out, graph, after, count, event, true);
}

EMU_API cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                size_t count, CUevent event) {
  return add_event(out, graph, after, count, event, false);
}

EMU_API cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                               size_t count) {
  return add_edges(graph, from, to, count);
}

EMU_API cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                  const CUgraphEdgeData*, size_t count) {
  return add_edges(graph, from, to, count);
}

EMU_API cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return guarded([&](Driver& d) {
    const auto graph = d.graphs.find(handle);
    if (!graph || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(graph->mutex);
    if (nodes == nullptr) {
      *count = graph->nodes.size();
      return CUDA_SUCCESS;
    }
    for (size_t i = 0; i < *count; ++i) {
      nodes[i] =
          i < graph->nodes.size() ? reinterpret_cast<CUgraphNode>(graph->nodes[i].get()) : nullptr;
    }
    *count = std::min(*count, graph->nodes.size());
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  return guarded([&](Driver& d) {
    if (type == nullptr || !graph_of(d, handle)) return CUDA_ERROR_INVALID_VALUE;
    *type = node_of(handle)->type;
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* child) {
  return guarded([&](Driver& d) {
    if (child == nullptr || !graph_of(d, handle) || !node_of(handle)->child) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *child = d.graphs.add(node_of(handle)->child);
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode*, char*, size_t) {
  return instantiate(exec, graph);
}

EMU_API cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode*, char*, size_t) {
  return instantiate(exec, graph);
}

EMU_API cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return instantiate(exec, graph, flags);
}

EMU_TWINS(cuGraphInstantiateWithParams, _ptsz,
          (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
          (static_cast<void>(mode), instantiate_with(exec, graph, params)))

EMU_TWINS(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream),
          (static_cast<void>(mode), static_cast<void>(stream), check_exec(exec)))
EMU_TWINS(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), launch(exec, stream, mode))

EMU_API cuGraphExecDestroy(CUgraphExec exec) {
  return guarded(
      [&](Driver& d) { return d.execs.remove(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; });
}
