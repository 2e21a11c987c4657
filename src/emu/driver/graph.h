// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What the entry points of graphs share: finding nodes, reading and telling their parameters, and
// putting a graph's operations in an order. A graph's nodes are guarded by its mutex, an
// executable's steps by its own.
#pragma once

#include <mutex>
#include <vector>

#include "emu/driver/api.h"

namespace sealane::emu {

inline GraphNode* node_of(CUgraphNode handle) { return reinterpret_cast<GraphNode*>(handle); }
inline CUgraphNode handle_of(const GraphNode* node) {
  return reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(node));
}

bool owns(const Graph& graph, const GraphNode* node);

// The graph a node lives in, nullptr: none, the handle is stale.
std::shared_ptr<Graph> graph_of(Driver& d, CUgraphNode handle);

// work(GraphNode&) on a live node whose operation is an Op, under its graph's mutex.
template <typename Op, typename Work>
CUresult with_node(CUgraphNode handle, const void* needed, Work&& work) {
  return guarded([&](Driver& d) {
    const auto graph = graph_of(d, handle);
    if (!graph || needed == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(graph->mutex);
    auto* operation = std::get_if<Op>(&node_of(handle)->operation);
    return operation != nullptr ? work(d, *operation) : CUDA_ERROR_INVALID_VALUE;
  });
}

// work(Driver&, Op&) on the step an executable graph has for a node.
template <typename Op, typename Work>
CUresult with_step(CUgraphExec handle, CUgraphNode node, const void* needed, Work&& work) {
  return guarded([&](Driver& d) {
    const auto exec = d.execs.find(handle);
    if (!exec || needed == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(exec->mutex);
    GraphExec::Step* step = exec->find(node_of(node));
    auto* operation = step != nullptr ? std::get_if<Op>(&step->operation) : nullptr;
    return operation != nullptr ? work(d, *operation) : CUDA_ERROR_INVALID_VALUE;
  });
}

// A node behind others of its graph.
CUresult add_to_graph(Driver& d, CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                      size_t count, GraphNode made);

// Appends the steps of a graph in an order that respects its dependencies. False: a cycle.
bool flatten(Graph& graph, std::vector<GraphExec::Step>& out);

// The last kernel's launch costs what the graph's does: the others are in the stream by then.
void charge_once(std::vector<GraphExec::Step>& steps);

// From the ABI's structures.
CUresult read_kernel(Driver& d, CUfunction function, const CUDA_KERNEL_NODE_PARAMS& p,
                     LaunchOperation& out);
CUresult read_fill(const CUDA_MEMSET_NODE_PARAMS* p, FillOperation& out);

}  // namespace sealane::emu
