// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Graphs after they were built, and executable graphs changed in place: thin over the driver's.

#include "emu/runtime/copy_shape.h"
#include "emu/runtime/node_params.h"

using namespace sealane::emu::runtime;

namespace {

constexpr auto kLegacy = Streams::legacy;

// work(const Calls&, const CUDA_KERNEL_NODE_PARAMS*)
template <typename Work>
cudaError_t with_kernel(const cudaKernelNodeParams* params, Work&& work) {
  return with_context(kLegacy, [&](const Calls& calls) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    const CUresult read = kernel_params(calls, params, kernel);
    return read == CUDA_SUCCESS ? work(calls, &kernel) : read;
  });
}

// work(const Calls&, const CUDA_MEMCPY3D*, CUcontext)
template <typename Work>
CUresult with_shape(const Calls& calls, CUresult described, const CUDA_MEMCPY3D& shape,
                    Work&& work) {
  if (described != CUDA_SUCCESS) return described;
  CUcontext current = nullptr;
  const CUresult found = calls.cuCtxGetCurrent(&current);
  return found == CUDA_SUCCESS ? work(calls, &shape, current) : found;
}

template <typename Work>
cudaError_t with_block(const cudaMemcpy3DParms* copy, Work&& work) {
  return with_context(kLegacy, [&](const Calls& calls) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D shape;
    return with_shape(calls, block_shape(calls, *copy, copy->kind, shape), shape, work);
  });
}

template <typename Work>
cudaError_t with_flat(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, Work&& work) {
  return with_context(kLegacy, [&](const Calls& calls) {
    CUDA_MEMCPY3D shape;
    return with_shape(calls, flat_shape(to, from, bytes, kind, shape), shape, work);
  });
}

// work(void*) with the memory of a variable.
template <typename Work>
cudaError_t with_symbol(const void* symbol, size_t offset, size_t bytes, Work&& work) {
  void* memory = nullptr;
  const cudaError_t found = with_context(kLegacy, [&](const Calls& calls) {
    return symbol_range(calls, symbol, offset, bytes, memory);
  });
  return found == cudaSuccess ? work(memory) : found;
}

cudaMemcpyKind kind_of(CUmemorytype from, CUmemorytype to) {
  if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  if (from == CU_MEMORYTYPE_HOST) {
    return to == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  }
  return to == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

cudaMemcpy3DParms runtime_params(const CUDA_MEMCPY3D& shape) {
  cudaMemcpy3DParms out{};
  out.srcPtr = {reinterpret_cast<void*>(shape.srcDevice), shape.srcPitch, shape.WidthInBytes,
                shape.srcHeight};
  out.dstPtr = {reinterpret_cast<void*>(shape.dstDevice), shape.dstPitch, shape.WidthInBytes,
                shape.dstHeight};
  out.extent = {shape.WidthInBytes, shape.Height, shape.Depth};
  out.kind = kind_of(shape.srcMemoryType, shape.dstMemoryType);
  return out;
}

// Where arrays take part: their positions and the extent in elements.
CUresult tell_arrays(const Calls& calls, const CUDA_MEMCPY3D& shape, cudaMemcpy3DParms& out) {
  const CUarray array = shape.srcArray != nullptr ? shape.srcArray : shape.dstArray;
  if (array == nullptr) return CUDA_SUCCESS;
  CUDA_ARRAY3D_DESCRIPTOR described{};
  const CUresult told = calls.cuArray3DGetDescriptor(&described, array);
  if (told != CUDA_SUCCESS) return told;
  const size_t element = element_bytes(described);
  out.extent.width /= element;
  if (shape.srcArray != nullptr) {
    out.srcArray = reinterpret_cast<cudaArray_t>(shape.srcArray);
    out.srcPos = {shape.srcXInBytes / element, shape.srcY, shape.srcZ};
    out.srcPtr = {};
  }
  if (shape.dstArray != nullptr) {
    out.dstArray = reinterpret_cast<cudaArray_t>(shape.dstArray);
    out.dstPos = {shape.dstXInBytes / element, shape.dstY, shape.dstZ};
    out.dstPtr = {};
  }
  return CUDA_SUCCESS;
}

}  // namespace

// CALL(driver call, arguments...): the driver's answer is ours.
#define CALL(name, ...) \
  with_context(kLegacy, [&](const Calls& calls) { return calls.name(__VA_ARGS__); })

EMU_RUNTIME cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
  return with_context(kLegacy, [&](const Calls& calls) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS kernel{};
    const CUresult told = calls.cuGraphKernelNodeGetParams(node, &kernel);
    if (told != CUDA_SUCCESS) return told;
    params->func = host_function_of(kernel.func);
    params->gridDim = dim3(kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ);
    params->blockDim = dim3(kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ);
    params->sharedMemBytes = kernel.sharedMemBytes;
    params->kernelParams = kernel.kernelParams;
    params->extra = kernel.extra;
    return CUDA_SUCCESS;
  });
}

EMU_RUNTIME cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  return with_kernel(params, [&](const Calls& calls, const CUDA_KERNEL_NODE_PARAMS* kernel) {
    return calls.cuGraphKernelNodeSetParams(node, kernel);
  });
}

EMU_RUNTIME cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  return with_kernel(params, [&](const Calls& calls, const CUDA_KERNEL_NODE_PARAMS* kernel) {
    return calls.cuGraphExecKernelNodeSetParams(exec, node, kernel);
  });
}

EMU_RUNTIME cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* copy) {
  return with_context(kLegacy, [&](const Calls& calls) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D shape{};
    const CUresult told = calls.cuGraphMemcpyNodeGetParams(node, &shape);
    if (told != CUDA_SUCCESS) return told;
    cudaMemcpy3DParms params = runtime_params(shape);
    const CUresult arrays = tell_arrays(calls, shape, params);
    if (arrays == CUDA_SUCCESS) *copy = params;
    return arrays;
  });
}

// What is done with a copy's description, in words for the two templates above.
#define SET_COPY                                                   \
  [&](const Calls& calls, const CUDA_MEMCPY3D* shape, CUcontext) { \
    return calls.cuGraphMemcpyNodeSetParams(node, shape);          \
  }
#define SET_COPY_OF_EXEC                                                     \
  [&](const Calls& calls, const CUDA_MEMCPY3D* shape, CUcontext current) {   \
    return calls.cuGraphExecMemcpyNodeSetParams(exec, node, shape, current); \
  }

EMU_RUNTIME cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* copy) {
  return with_block(copy, SET_COPY);
}

EMU_RUNTIME cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                           size_t bytes, cudaMemcpyKind kind) {
  return with_flat(to, from, bytes, kind, SET_COPY);
}

EMU_RUNTIME cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* copy) {
  return with_block(copy, SET_COPY_OF_EXEC);
}

EMU_RUNTIME cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                               const void* from, size_t bytes,
                                               cudaMemcpyKind kind) {
  return with_flat(to, from, bytes, kind, SET_COPY_OF_EXEC);
}

EMU_RUNTIME cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol,
                                                 const void* from, size_t bytes, size_t offset,
                                                 cudaMemcpyKind kind) {
  return with_symbol(symbol, offset, bytes,
                     [&](void* to) { return with_flat(to, from, bytes, kind, SET_COPY); });
}

EMU_RUNTIME cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to,
                                                   const void* symbol, size_t bytes, size_t offset,
                                                   cudaMemcpyKind kind) {
  return with_symbol(symbol, offset, bytes,
                     [&](void* from) { return with_flat(to, from, bytes, kind, SET_COPY); });
}

EMU_RUNTIME cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const void* symbol, const void* from,
                                                     size_t bytes, size_t offset,
                                                     cudaMemcpyKind kind) {
  return with_symbol(symbol, offset, bytes,
                     [&](void* to) { return with_flat(to, from, bytes, kind, SET_COPY_OF_EXEC); });
}

EMU_RUNTIME cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       void* to, const void* symbol, size_t bytes,
                                                       size_t offset, cudaMemcpyKind kind) {
  return with_symbol(symbol, offset, bytes, [&](void* from) {
    return with_flat(to, from, bytes, kind, SET_COPY_OF_EXEC);
  });
}
#undef SET_COPY_OF_EXEC
#undef SET_COPY

EMU_RUNTIME cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* fill) {
  return CALL(cuGraphMemsetNodeSetParams, node, driver_params(fill));
}

EMU_RUNTIME cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* fill) {
  return with_context(kLegacy, [&](const Calls& calls) {
    CUcontext current = nullptr;
    const CUresult found = calls.cuCtxGetCurrent(&current);
    if (found != CUDA_SUCCESS) return found;
    return calls.cuGraphExecMemsetNodeSetParams(exec, node, driver_params(fill), current);
  });
}

EMU_RUNTIME cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* host) {
  return CALL(cuGraphHostNodeGetParams, node, reinterpret_cast<CUDA_HOST_NODE_PARAMS*>(host));
}

EMU_RUNTIME cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* host) {
  return CALL(cuGraphHostNodeSetParams, node, driver_params(host));
}

EMU_RUNTIME cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* host) {
  return CALL(cuGraphExecHostNodeSetParams, exec, node, driver_params(host));
}

EMU_RUNTIME cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return CALL(cuGraphEventRecordNodeGetEvent, node, event);
}
EMU_RUNTIME cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return CALL(cuGraphEventRecordNodeSetEvent, node, event);
}
EMU_RUNTIME cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return CALL(cuGraphEventWaitNodeGetEvent, node, event);
}
EMU_RUNTIME cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return CALL(cuGraphEventWaitNodeSetEvent, node, event);
}
EMU_RUNTIME cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event) {
  return CALL(cuGraphExecEventRecordNodeSetEvent, exec, node, event);
}
EMU_RUNTIME cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event) {
  return CALL(cuGraphExecEventWaitNodeSetEvent, exec, node, event);
}

EMU_RUNTIME cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return CALL(cuGraphGetRootNodes, graph, nodes, count);
}
EMU_RUNTIME cudaGraphDestroyNode(cudaGraphNode_t node) { return CALL(cuGraphDestroyNode, node); }
EMU_RUNTIME cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original,
                                     cudaGraph_t clone) {
  return CALL(cuGraphNodeFindInClone, node, original, clone);
}
EMU_RUNTIME cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return CALL(cuGraphNodeSetEnabled, exec, node, enabled);
}
EMU_RUNTIME cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  return CALL(cuGraphNodeGetEnabled, exec, node, enabled);
}
EMU_RUNTIME cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return CALL(cuGraphExecGetFlags, exec, reinterpret_cast<cuuint64_t*>(flags));
}
EMU_RUNTIME cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  return CALL(cuGraphExecUpdate, exec, graph, reinterpret_cast<CUgraphExecUpdateResultInfo*>(info));
}

EMU_RUNTIME cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy,
                                 unsigned count, unsigned flags) {
  return CALL(cuUserObjectCreate, object, data, destroy, count, flags);
}
EMU_RUNTIME cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return CALL(cuUserObjectRetain, object, count);
}
EMU_RUNTIME cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return CALL(cuUserObjectRelease, object, count);
}
EMU_RUNTIME cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags) {
  return CALL(cuGraphRetainUserObject, graph, object, count, flags);
}
EMU_RUNTIME cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  return CALL(cuGraphReleaseUserObject, graph, object, count);
}

EMU_RUNTIME_TWINS(cudaStreamBeginCaptureToGraph, _ptsz,
                  (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* after,
                   const cudaGraphEdgeData* edges, size_t count, cudaStreamCaptureMode how),
                  with_context(mode, [&](const Calls& calls) {
                    return calls.cuStreamBeginCaptureToGraph(
                        stream, graph, after, reinterpret_cast<const CUgraphEdgeData*>(edges),
                        count, static_cast<CUstreamCaptureMode>(how));
                  }))

// With edge data: CUDA 13's only form, CUDA 12's second.
#if CUDART_VERSION >= 13000
#define WITH_EDGES(name) name
#else
#define WITH_EDGES(name) name##_v2
#endif
#define DRIVER(edges) reinterpret_cast<CUgraphEdgeData*>(edges)

EMU_RUNTIME WITH_EDGES(cudaGraphGetEdges)(cudaGraph_t graph, cudaGraphNode_t* from,
                                          cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                                          size_t* count) {
  return CALL(cuGraphGetEdges, graph, from, to, DRIVER(edges), count);
}
EMU_RUNTIME WITH_EDGES(cudaGraphNodeGetDependencies)(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                                     cudaGraphEdgeData* edges, size_t* count) {
  return CALL(cuGraphNodeGetDependencies, node, nodes, DRIVER(edges), count);
}
EMU_RUNTIME WITH_EDGES(cudaGraphNodeGetDependentNodes)(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                                       cudaGraphEdgeData* edges, size_t* count) {
  return CALL(cuGraphNodeGetDependentNodes, node, nodes, DRIVER(edges), count);
}
EMU_RUNTIME WITH_EDGES(cudaGraphRemoveDependencies)(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                    const cudaGraphNode_t* to,
                                                    const cudaGraphEdgeData*, size_t count) {
  return CALL(cuGraphRemoveDependencies, graph, from, to, nullptr, count);
}
#undef DRIVER
#undef WITH_EDGES

namespace {

CUresult update_tail(const Calls& calls, cudaStream_t stream, cudaGraphNode_t* nodes, size_t count,
                     unsigned flags) {
  return calls.cuStreamUpdateCaptureDependencies(stream, nodes, nullptr, count, flags);
}

}  // namespace

#if CUDART_VERSION >= 13000
EMU_RUNTIME_TWINS(cudaStreamUpdateCaptureDependencies, _ptsz,
                  (cudaStream_t stream, cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges,
                   size_t count, unsigned flags),
                  with_context(mode, [&](const Calls& calls) {
                    static_cast<void>(edges);
                    return update_tail(calls, stream, nodes, count, flags);
                  }))
#else
EMU_RUNTIME cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              size_t* count) {
  return CALL(cuGraphGetEdges, graph, from, to, nullptr, count);
}
EMU_RUNTIME cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         size_t* count) {
  return CALL(cuGraphNodeGetDependencies, node, nodes, nullptr, count);
}
EMU_RUNTIME cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                           size_t* count) {
  return CALL(cuGraphNodeGetDependentNodes, node, nodes, nullptr, count);
}
EMU_RUNTIME cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, size_t count) {
  return CALL(cuGraphRemoveDependencies, graph, from, to, nullptr, count);
}
EMU_RUNTIME_TWINS(cudaStreamUpdateCaptureDependencies, _ptsz,
                  (cudaStream_t stream, cudaGraphNode_t* nodes, size_t count, unsigned flags),
                  with_context(mode, [&](const Calls& calls) {
                    return update_tail(calls, stream, nodes, count, flags);
                  }))
EMU_RUNTIME_TWINS(cudaStreamUpdateCaptureDependencies_v2, _ptsz,
                  (cudaStream_t stream, cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges,
                   size_t count, unsigned flags),
                  with_context(mode, [&](const Calls& calls) {
                    static_cast<void>(edges);
                    return update_tail(calls, stream, nodes, count, flags);
                  }))
#endif
#undef CALL
