// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Graphs that a program builds node by node: thin over the driver's. What the runtime says in other
// words (a kernel is a host function's address, a copy has a direction) is put into the driver's.

#include "emu/runtime/copy_shape.h"
#include "emu/runtime/node_params.h"

using namespace sealane::emu::runtime;

// CALL(driver call, arguments...): the driver's answer is ours.
#define CALL(name, ...) \
  with_context(Streams::legacy, [&](const Calls& calls) { return calls.name(__VA_ARGS__); })

// Where a new node goes.
#define PLACE cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count
#define PLACED node, graph, after, count

EMU_RUNTIME cudaGraphAddKernelNode(PLACE, const cudaKernelNodeParams* params) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    const CUresult read = kernel_params(calls, params, kernel);
    return read == CUDA_SUCCESS ? calls.cuGraphAddKernelNode(PLACED, &kernel) : read;
  });
}

namespace {

CUresult add_copy(const Calls& calls, PLACE, CUresult described, const CUDA_MEMCPY3D& shape) {
  if (described != CUDA_SUCCESS) return described;
  CUcontext current = nullptr;
  const CUresult found = calls.cuCtxGetCurrent(&current);
  return found == CUDA_SUCCESS ? calls.cuGraphAddMemcpyNode(PLACED, &shape, current) : found;
}

}  // namespace

EMU_RUNTIME cudaGraphAddMemcpyNode(PLACE, const cudaMemcpy3DParms* copy) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D shape;
    return add_copy(calls, PLACED, block_shape(calls, *copy, copy->kind, shape), shape);
  });
}

EMU_RUNTIME cudaGraphAddMemcpyNode1D(PLACE, void* to, const void* from, size_t bytes,
                                     cudaMemcpyKind kind) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    CUDA_MEMCPY3D shape;
    return add_copy(calls, PLACED, flat_shape(to, from, bytes, kind, shape), shape);
  });
}

EMU_RUNTIME cudaGraphAddMemcpyNodeToSymbol(PLACE, const void* symbol, const void* from,
                                           size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    void* to = nullptr;
    const CUresult found = symbol_range(calls, symbol, offset, bytes, to);
    if (found != CUDA_SUCCESS) return found;
    CUDA_MEMCPY3D shape;
    return add_copy(calls, PLACED, flat_shape(to, from, bytes, kind, shape), shape);
  });
}

EMU_RUNTIME cudaGraphAddMemcpyNodeFromSymbol(PLACE, void* to, const void* symbol, size_t bytes,
                                             size_t offset, cudaMemcpyKind kind) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    void* from = nullptr;
    const CUresult found = symbol_range(calls, symbol, offset, bytes, from);
    if (found != CUDA_SUCCESS) return found;
    CUDA_MEMCPY3D shape;
    return add_copy(calls, PLACED, flat_shape(to, from, bytes, kind, shape), shape);
  });
}

EMU_RUNTIME cudaGraphAddMemsetNode(PLACE, const cudaMemsetParams* fill) {
  return with_context(Streams::legacy, [&](const Calls& calls) {
    CUcontext current = nullptr;
    const CUresult found = calls.cuCtxGetCurrent(&current);
    return found == CUDA_SUCCESS ? calls.cuGraphAddMemsetNode(PLACED, driver_params(fill), current)
                                 : found;
  });
}

EMU_RUNTIME cudaGraphAddHostNode(PLACE, const cudaHostNodeParams* host) {
  return CALL(cuGraphAddHostNode, PLACED, driver_params(host));
}

EMU_RUNTIME cudaGraphAddEmptyNode(PLACE) { return CALL(cuGraphAddEmptyNode, PLACED); }

EMU_RUNTIME cudaGraphAddChildGraphNode(PLACE, cudaGraph_t child) {
  return CALL(cuGraphAddChildGraphNode, PLACED, child);
}

EMU_RUNTIME cudaGraphAddEventRecordNode(PLACE, cudaEvent_t event) {
  return CALL(cuGraphAddEventRecordNode, PLACED, event);
}

EMU_RUNTIME cudaGraphAddEventWaitNode(PLACE, cudaEvent_t event) {
  return CALL(cuGraphAddEventWaitNode, PLACED, event);
}

// Structures of both APIs have the same layout.
EMU_RUNTIME cudaGraphAddMemAllocNode(PLACE, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return CALL(cuGraphAddMemAllocNode, PLACED, params);
}

EMU_RUNTIME cudaGraphAddMemFreeNode(PLACE, void* memory) {
  return CALL(cuGraphAddMemFreeNode, PLACED, address(memory));
}
#undef PLACED
#undef PLACE

EMU_RUNTIME cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                           CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return CALL(cuGraphMemAllocNodeGetParams, node, params);
}

EMU_RUNTIME cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* memory) {
  return CALL(cuGraphMemFreeNodeGetParams, node, static_cast<CUdeviceptr*>(memory));
}

EMU_RUNTIME cudaDeviceGraphMemTrim(int device) { return CALL(cuDeviceGraphMemTrim, device); }

EMU_RUNTIME cudaDeviceGetGraphMemAttribute(int device, int attribute, void* value) {
  return CALL(cuDeviceGetGraphMemAttribute, device, attribute, value);
}

EMU_RUNTIME cudaDeviceSetGraphMemAttribute(int device, int attribute, void* value) {
  return CALL(cuDeviceSetGraphMemAttribute, device, attribute, value);
}

EMU_RUNTIME cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  return CALL(cuGraphClone, clone, original);
}

EMU_RUNTIME cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return CALL(cuGraphNodeGetType, node, reinterpret_cast<CUgraphNodeType*>(type));
}

EMU_RUNTIME cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* child) {
  return CALL(cuGraphChildGraphNodeGetGraph, node, child);
}

EMU_RUNTIME cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* fill) {
  return CALL(cuGraphMemsetNodeGetParams, node, reinterpret_cast<CUDA_MEMSET_NODE_PARAMS*>(fill));
}

EMU_RUNTIME_TWINS(cudaGraphInstantiateWithParams, _ptsz,
                  (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams* params),
                  with_context(mode, [&](const Calls& calls) {
                    return calls.cuGraphInstantiateWithParams(
                        exec, graph, reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(params));
                  }))

// CUDA 13 dropped the first versions of these and kept their names.
namespace {

CUresult capture_info(const Calls& calls, cudaStream_t stream, cudaStreamCaptureStatus* status,
                      unsigned long long* id, cudaGraph_t* graph,
                      const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                      size_t* count) {
  static_assert(sizeof(unsigned long long) == sizeof(cuuint64_t));
  return calls.cuStreamGetCaptureInfo(stream, reinterpret_cast<CUstreamCaptureStatus*>(status),
                                      reinterpret_cast<cuuint64_t*>(id), graph, dependencies,
                                      reinterpret_cast<const CUgraphEdgeData**>(edges), count);
}

}  // namespace

#define CAPTURE_INFO_WITH_EDGES(name, suffix)                                                     \
  EMU_RUNTIME_TWINS(                                                                              \
      name, suffix,                                                                               \
      (cudaStream_t stream, cudaStreamCaptureStatus * status, unsigned long long* id,             \
       cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges, \
       size_t* count),                                                                            \
      with_context(mode, [&](const Calls& calls) {                                                \
        return capture_info(calls, stream, status, id, graph, dependencies, edges, count);        \
      }))

#if CUDART_VERSION >= 13000
CAPTURE_INFO_WITH_EDGES(cudaStreamGetCaptureInfo, _ptsz)

EMU_RUNTIME cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                     size_t count) {
  return CALL(cuGraphAddDependencies, graph, from, to,
              reinterpret_cast<const CUgraphEdgeData*>(edges), count);
}
#else
#undef cudaStreamGetCaptureInfo
CAPTURE_INFO_WITH_EDGES(cudaStreamGetCaptureInfo_v3, _ptsz)
EMU_RUNTIME_TWINS(cudaStreamGetCaptureInfo_v2, _ptsz,
                  (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                   cudaGraph_t* graph, const cudaGraphNode_t** dependencies, size_t* count),
                  with_context(mode, [&](const Calls& calls) {
                    return capture_info(calls, stream, status, id, graph, dependencies, nullptr,
                                        count);
                  }))
EMU_RUNTIME_TWINS(cudaStreamGetCaptureInfo, _ptsz,
                  (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id),
                  with_context(mode, [&](const Calls& calls) {
                    return capture_info(calls, stream, status, id, nullptr, nullptr, nullptr,
                                        nullptr);
                  }))

EMU_RUNTIME cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, size_t count) {
  return CALL(cuGraphAddDependencies, graph, from, to, nullptr, count);
}

EMU_RUNTIME cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                        size_t count) {
  return CALL(cuGraphAddDependencies, graph, from, to,
              reinterpret_cast<const CUgraphEdgeData*>(edges), count);
}
#endif
#undef CAPTURE_INFO_WITH_EDGES
#undef CALL
