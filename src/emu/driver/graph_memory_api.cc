// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Nodes of graphs that allocate and free memory; driver/graph_memory.h says how long it lives.

#include "emu/driver/graph.h"
#include "emu/driver/graph_memory.h"

using namespace sealane::emu;

namespace {

// work(ordinal)
template <typename Work>
CUresult on_gpu(CUdevice device, Work&& work) {
  return guarded([&](Driver& d) {
    const Gpu* gpu = d.gpu_at(device);
    return gpu == nullptr ? CUDA_ERROR_INVALID_DEVICE : work(gpu->ordinal);
  });
}

}  // namespace

EMU_API cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                               size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* p) {
  return guarded([&](Driver& d) {
    if (p == nullptr || p->bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    if (p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    Gpu* gpu = d.gpu_at(p->poolProps.location.id);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    auto memory = GraphMemory::allocate(*gpu, p->bytesize);
    if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
    p->dptr = memory->address();
    GraphNode made;
    made.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    made.operation = AllocOperation{std::move(memory)};
    return add_to_graph(d, out, graph, after, count, std::move(made));
  });
}

EMU_API cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                              size_t count, CUdeviceptr address) {
  return guarded([&](Driver& d) {
    if (!GraphMemory::at(address)) return CUDA_ERROR_INVALID_VALUE;
    GraphNode made;
    made.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
    made.operation = FreeOperation{address};
    return add_to_graph(d, out, graph, after, count, std::move(made));
  });
}

EMU_API cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* p) {
  return with_node<AllocOperation>(node, p, [&](Driver&, AllocOperation& operation) {
    *p = {};
    p->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    p->poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, operation.memory->ordinal()};
    p->bytesize = operation.memory->bytes();
    p->dptr = operation.memory->address();
    return CUDA_SUCCESS;
  });
}

EMU_API cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  return with_node<FreeOperation>(node, address, [&](Driver&, FreeOperation& operation) {
    *address = operation.address;
    return CUDA_SUCCESS;
  });
}

EMU_API cuDeviceGraphMemTrim(CUdevice device) {
  return on_gpu(device, [](int) { return CUDA_SUCCESS; });  // nothing is hoarded
}

EMU_API cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void* value) {
  return on_gpu(device, [&](int ordinal) {
    const bool well = value != nullptr &&
                      graph_memory_attribute(ordinal, attribute, *static_cast<uint64_t*>(value));
    return well ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

EMU_API cuDeviceSetGraphMemAttribute(CUdevice device, int attribute, void* value) {
  return on_gpu(device, [&](int ordinal) {
    const bool zero = value != nullptr && *static_cast<uint64_t*>(value) == 0;
    return zero && reset_graph_memory_high(ordinal, attribute) ? CUDA_SUCCESS
                                                               : CUDA_ERROR_INVALID_VALUE;
  });
}
