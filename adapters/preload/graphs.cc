// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "graphs.h"

#include <mutex>
#include <set>
#include <tuple>

#include "hooks.h"

using namespace sealane::preload;
namespace serve = sealane::serve;

namespace {

struct HostNode {
  CUhostFn function;
  void* data;
  serve::ContextHandle context;

  bool operator<(const HostNode& other) const {
    return std::tie(function, data, context) < std::tie(other.function, other.data, other.context);
  }
  static void run(void* self) {
    const HostNode& node = *static_cast<const HostNode*>(self);
    serve::Runtime* const runtime = serve::Runtime::get();
    if (runtime == nullptr || runtime->may_run(node.context)) node.function(node.data);
  }
};

// The address of each is the driver's: they stay where they are.
const HostNode* keep(const HostNode& node) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::set<HostNode>;
  const std::lock_guard lock(mutex);
  return &*all.insert(node).first;
}

// Whoever changes a node does not change whose it is.
serve::ContextHandle context_of(CUgraphNode node) {
  const auto ask = SEALANE_REAL(cuGraphHostNodeGetParams);
  CUDA_HOST_NODE_PARAMS known{};
  const bool ours = node != nullptr && ask != nullptr && ask(node, &known) == CUDA_SUCCESS &&
                    known.fn == &HostNode::run;
  return ours ? static_cast<const HostNode*>(known.userData)->context : handle(current_context());
}

// Around a call that gives the driver a node, or changes one.
template <typename Call>
CUresult give_node(CUgraphNode changed, const CUDA_HOST_NODE_PARAMS* node, Call&& call) {
  if (serve::Runtime::get() == nullptr || node == nullptr || node->fn == nullptr) return call(node);
  const CUDA_HOST_NODE_PARAMS guarded = guard_node(*node, context_of(changed));
  return call(&guarded);
}

// The program is told of its own function.
CUresult tell_node(CUDA_HOST_NODE_PARAMS* node, CUresult result) {
  if (result != CUDA_SUCCESS || node->fn != &HostNode::run) return result;
  const auto& ours = *static_cast<const HostNode*>(node->userData);
  *node = {ours.function, ours.data};
  return result;
}

}  // namespace

namespace sealane::preload {

CUDA_HOST_NODE_PARAMS guard_node(const CUDA_HOST_NODE_PARAMS& node, serve::ContextHandle context) {
  return {&HostNode::run, const_cast<HostNode*>(keep({node.fn, node.userData, context}))};
}

}  // namespace sealane::preload

SEALANE_SINGLE(cuGraphAddHostNode,
               (CUgraphNode * out, CUgraph graph, const CUgraphNode* after, size_t count,
                const CUDA_HOST_NODE_PARAMS* node),
               give_node(nullptr, node, [&](const CUDA_HOST_NODE_PARAMS* given) {
                 return next(out, graph, after, count, given);
               }))
SEALANE_SINGLE(cuGraphHostNodeSetParams, (CUgraphNode at, const CUDA_HOST_NODE_PARAMS* node),
               give_node(at, node,
                         [&](const CUDA_HOST_NODE_PARAMS* given) { return next(at, given); }))
SEALANE_SINGLE(cuGraphExecHostNodeSetParams,
               (CUgraphExec exec, CUgraphNode at, const CUDA_HOST_NODE_PARAMS* node),
               give_node(at, node,
                         [&](const CUDA_HOST_NODE_PARAMS* given) { return next(exec, at, given); }))
SEALANE_SINGLE(cuGraphHostNodeGetParams, (CUgraphNode at, CUDA_HOST_NODE_PARAMS* node),
               tell_node(node, next(at, node)))
