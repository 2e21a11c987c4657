// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Graphs are looked at when they are made executable, node by node. Later changes cannot add nodes
// or change their types, but may send a fill somewhere else: a changed graph counts as unknown.

#include "graphs.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_set>
#include <vector>

#include "hooks.h"

using namespace sealane::preload;
namespace serve = sealane::serve;

namespace {

constexpr int kDepthMax = 16;  // of graphs within graphs

// Node types that our declarations do not have.
constexpr int kAllocateNode = 10;
constexpr int kFreeNode = 11;

struct Calls {
  CUresult (*nodes)(CUgraph, CUgraphNode*, size_t*);
  CUresult (*type)(CUgraphNode, CUgraphNodeType*);
  CUresult (*child)(CUgraphNode, CUgraph*);
  CUresult (*fill)(CUgraphNode, CUDA_MEMSET_NODE_PARAMS*);

  Calls() {
    find_in_driver(nodes, "cuGraphGetNodes");
    find_in_driver(type, "cuGraphNodeGetType");
    find_in_driver(child, "cuGraphChildGraphNodeGetGraph");
    find_in_driver(fill, "cuGraphMemsetNodeGetParams");
  }
  bool all() const {
    return nodes != nullptr && type != nullptr && child != nullptr && fill != nullptr;
  }
};

const Calls& calls() {
  static const Calls& found = *new Calls;
  return found;
}

struct Known {
  std::shared_mutex mutex;
  std::unordered_set<CUgraphExec> harmless;
};

// Never destroyed: exit handlers of the program still launch.
Known& known() {
  static Known& made = *new Known;
  return made;
}

bool fills_device(serve::Runtime& runtime, CUgraphNode node) {
  CUDA_MEMSET_NODE_PARAMS fill{};
  if (calls().fill(node, &fill) != CUDA_SUCCESS || fill.height == 0) return false;
  const uint64_t bytes = (fill.height - 1) * fill.pitch + fill.width * fill.elementSize;
  const auto block = runtime.device_memory().find(fill.dst);
  return block && block->range.contains({fill.dst, bytes});
}

bool harmless(serve::Runtime& runtime, CUgraph graph, int depth);

bool harmless(serve::Runtime& runtime, CUgraphNode node, int depth) {
  CUgraphNodeType type{};
  if (calls().type(node, &type) != CUDA_SUCCESS) return false;
  switch (static_cast<int>(type)) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case kAllocateNode:
    case kFreeNode:
      return true;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return fills_device(runtime, node);
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      CUgraph child = nullptr;
      return calls().child(node, &child) == CUDA_SUCCESS && harmless(runtime, child, depth + 1);
    }
    default:
      return false;
  }
}

bool harmless(serve::Runtime& runtime, CUgraph graph, int depth) {
  size_t count = 0;
  if (depth > kDepthMax || calls().nodes(graph, nullptr, &count) != CUDA_SUCCESS) return false;
  std::vector<CUgraphNode> nodes(count);
  if (count > 0 && calls().nodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return false;
  return count == nodes.size() && std::all_of(nodes.begin(), nodes.end(), [&](CUgraphNode node) {
           return harmless(runtime, node, depth);
         });
}

void forget(CUgraphExec graph) {
  const std::unique_lock lock(known().mutex);
  known().harmless.erase(graph);
}

// Around a call that makes `*made` of `graph`.
template <typename Call>
CUresult instantiate(const CUgraphExec* made, CUgraph graph, Call&& call) {
  serve::Runtime* const runtime = serve::Runtime::get();
  const bool look = runtime != nullptr && runtime->seals_ahead() && calls().all();
  const bool alone = look && harmless(*runtime, graph, 0);
  const CUresult result = call();
  if (look && result == CUDA_SUCCESS) {
    const std::unique_lock lock(known().mutex);
    if (alone) {
      known().harmless.insert(*made);
    } else {
      known().harmless.erase(*made);  // the handle of one that is gone
    }
  }
  return result;
}

}  // namespace

namespace sealane::preload {

bool leaves_host_alone(CUgraphExec graph) {
  const std::shared_lock lock(known().mutex);
  return known().harmless.contains(graph);
}

}  // namespace sealane::preload

#define HOOK(symbol, parameters, ...)                                  \
  SEALANE_HOOKED symbol parameters {                                   \
    const auto next = SEALANE_REAL(symbol);                            \
    return next == nullptr ? CUDA_ERROR_NOT_INITIALIZED : __VA_ARGS__; \
  }
#define INSTANTIATE(arguments) instantiate(made, graph, [&] { return next arguments; })
#define CHANGE(symbol, parameters, arguments) \
  HOOK(symbol, parameters, (forget(graph), next arguments))

HOOK(cuGraphInstantiate,
     (CUgraphExec * made, CUgraph graph, CUgraphNode* culprit, char* log, size_t bytes),
     INSTANTIATE((made, graph, culprit, log, bytes)))
HOOK(cuGraphInstantiate_v2,
     (CUgraphExec * made, CUgraph graph, CUgraphNode* culprit, char* log, size_t bytes),
     INSTANTIATE((made, graph, culprit, log, bytes)))
HOOK(cuGraphInstantiateWithFlags, (CUgraphExec * made, CUgraph graph, unsigned long long flags),
     INSTANTIATE((made, graph, flags)))
HOOK(cuGraphInstantiateWithParams,
     (CUgraphExec * made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
     INSTANTIATE((made, graph, params)))
HOOK(cuGraphInstantiateWithParams_ptsz,
     (CUgraphExec * made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
     INSTANTIATE((made, graph, params)))

CHANGE(cuGraphExecDestroy, (CUgraphExec graph), (graph))
CHANGE(cuGraphExecUpdate, (CUgraphExec graph, CUgraph to, CUgraphNode* culprit, int* result),
       (graph, to, culprit, result))
CHANGE(cuGraphExecUpdate_v2, (CUgraphExec graph, CUgraph to, void* result), (graph, to, result))
CHANGE(cuGraphExecMemsetNodeSetParams,
       (CUgraphExec graph, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
        CUcontext context),
       (graph, node, params, context))
CHANGE(cuGraphExecChildGraphNodeSetParams, (CUgraphExec graph, CUgraphNode node, CUgraph child),
       (graph, node, child))
CHANGE(cuGraphExecNodeSetParams, (CUgraphExec graph, CUgraphNode node, void* params),
       (graph, node, params))
