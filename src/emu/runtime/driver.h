// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The runtime's way to the driver, as NVIDIA's goes: libcuda.so.1 is opened once,
// cuGetProcAddress_v2 is looked up by name, everything else through it. So whatever sits between a
// program and its driver sees this runtime do what it will see the real one do.
#pragma once

#include "cuda_abi/cuda.h"
#include "cuda_abi/cudaProfiler.h"
#include "cuda_abi/cuda_runtime_api.h"

namespace sealane::emu::runtime {

// X(call, CUDA version whose variant we mean)
#define SEALANE_EMU_DRIVER_CALLS(X)                    \
  X(cuInit, 2000)                                      \
  X(cuDriverGetVersion, 2020)                          \
  X(cuDeviceGet, 2000)                                 \
  X(cuDeviceGetCount, 2000)                            \
  X(cuDeviceGetName, 2000)                             \
  X(cuDeviceGetUuid, 11040)                            \
  X(cuDeviceTotalMem, 3020)                            \
  X(cuDeviceGetAttribute, 2000)                        \
  X(cuDeviceGetPCIBusId, 4010)                         \
  X(cuDeviceGetByPCIBusId, 4010)                       \
  X(cuDeviceCanAccessPeer, 4000)                       \
  X(cuDevicePrimaryCtxRetain, 7000)                    \
  X(cuDevicePrimaryCtxReset, 11000)                    \
  X(cuDevicePrimaryCtxSetFlags, 11000)                 \
  X(cuDevicePrimaryCtxGetState, 7000)                  \
  X(cuCtxGetCurrent, 4000)                             \
  X(cuCtxSetCurrent, 4000)                             \
  X(cuCtxGetDevice, 2000)                              \
  X(cuCtxSynchronize, 2000)                            \
  X(cuCtxGetLimit, 3010)                               \
  X(cuCtxSetLimit, 3010)                               \
  X(cuCtxGetCacheConfig, 3020)                         \
  X(cuCtxSetCacheConfig, 3020)                         \
  X(cuCtxGetStreamPriorityRange, 5050)                 \
  X(cuCtxEnablePeerAccess, 4000)                       \
  X(cuCtxDisablePeerAccess, 4000)                      \
  X(cuMemGetInfo, 3020)                                \
  X(cuMemAlloc, 3020)                                  \
  X(cuMemAllocPitch, 3020)                             \
  X(cuMemFree, 3020)                                   \
  X(cuMemFreeHost, 2000)                               \
  X(cuMemHostAlloc, 2020)                              \
  X(cuMemHostGetDevicePointer, 3020)                   \
  X(cuMemHostGetFlags, 2030)                           \
  X(cuMemHostRegister, 6050)                           \
  X(cuMemHostUnregister, 4000)                         \
  X(cuPointerGetAttributes, 7000)                      \
  X(cuDeviceGetDefaultMemPool, 11020)                  \
  X(cuDeviceGetMemPool, 11020)                         \
  X(cuDeviceSetMemPool, 11020)                         \
  X(cuMemPoolCreate, 11020)                            \
  X(cuMemPoolDestroy, 11020)                           \
  X(cuMemPoolTrimTo, 11020)                            \
  X(cuMemPoolSetAttribute, 11020)                      \
  X(cuMemPoolGetAttribute, 11020)                      \
  X(cuMemAllocAsync, 11020)                            \
  X(cuMemAllocFromPoolAsync, 11020)                    \
  X(cuMemFreeAsync, 11020)                             \
  X(cuMemcpy, 7000)                                    \
  X(cuMemcpyAsync, 7000)                               \
  X(cuMemcpyHtoD, 7000)                                \
  X(cuMemcpyDtoH, 7000)                                \
  X(cuMemcpyDtoD, 7000)                                \
  X(cuMemcpyHtoDAsync, 7000)                           \
  X(cuMemcpyDtoHAsync, 7000)                           \
  X(cuMemcpyDtoDAsync, 7000)                           \
  X(cuMemcpy2DUnaligned, 7000)                         \
  X(cuMemcpy2DAsync, 7000)                             \
  X(cuMemcpy3D, 7000)                                  \
  X(cuMemcpy3DAsync, 7000)                             \
  X(cuMemcpyBatchAsync, 13000)                         \
  X(cuArray3DCreate, 3020)                             \
  X(cuArray3DGetDescriptor, 3020)                      \
  X(cuArrayDestroy, 2000)                              \
  X(cuMemsetD8, 7000)                                  \
  X(cuMemsetD8Async, 7000)                             \
  X(cuMemsetD2D8, 7000)                                \
  X(cuMemsetD2D8Async, 7000)                           \
  X(cuStreamCreateWithPriority, 5050)                  \
  X(cuStreamDestroy, 4000)                             \
  X(cuStreamGetPriority, 7000)                         \
  X(cuStreamGetFlags, 7000)                            \
  X(cuStreamGetId, 12000)                              \
  X(cuStreamGetDevice, 12080)                          \
  X(cuStreamQuery, 7000)                               \
  X(cuStreamSynchronize, 7000)                         \
  X(cuStreamWaitEvent, 7000)                           \
  X(cuStreamAddCallback, 7000)                         \
  X(cuLaunchHostFunc, 10000)                           \
  X(cuEventCreate, 2000)                               \
  X(cuEventDestroy, 4000)                              \
  X(cuEventRecord, 7000)                               \
  X(cuEventRecordWithFlags, 11010)                     \
  X(cuEventQuery, 2000)                                \
  X(cuEventSynchronize, 2000)                          \
  X(cuEventElapsedTime, 12080)                         \
  X(cuLibraryLoadData, 12000)                          \
  X(cuLibraryUnload, 12000)                            \
  X(cuLibraryGetKernel, 12000)                         \
  X(cuKernelGetFunction, 12000)                        \
  X(cuFuncGetAttribute, 2020)                          \
  X(cuFuncSetAttribute, 9000)                          \
  X(cuLaunchKernel, 7000)                              \
  X(cuLaunchCooperativeKernel, 9000)                   \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
  X(cuStreamBeginCapture, 10010)                       \
  X(cuStreamEndCapture, 10000)                         \
  X(cuStreamIsCapturing, 10000)                        \
  X(cuThreadExchangeStreamCaptureMode, 10010)          \
  X(cuGraphCreate, 10000)                              \
  X(cuGraphDestroy, 10000)                             \
  X(cuGraphInstantiateWithFlags, 11040)                \
  X(cuGraphGetNodes, 10000)                            \
  X(cuGraphUpload, 11010)                              \
  X(cuGraphLaunch, 10000)                              \
  X(cuGraphExecDestroy, 10000)                         \
  X(cuDeviceGetP2PAttribute, 8000)                     \
  X(cuFuncGetParamInfo, 12040)                         \
  X(cuKernelSetAttribute, 12000)                       \
  X(cuLibraryLoadFromFile, 12000)                      \
  X(cuLibraryGetGlobal, 12000)                         \
  X(cuMemPoolSetAccess, 11020)                         \
  X(cuMemPoolGetAccess, 11020)                         \
  X(cuMemcpy3DBatchAsync, 13000)                       \
  X(cuStreamGetCaptureInfo, 12030)                     \
  X(cuGraphClone, 10000)                               \
  X(cuGraphAddMemAllocNode, 11040)                     \
  X(cuGraphAddMemFreeNode, 11040)                      \
  X(cuGraphMemAllocNodeGetParams, 11040)               \
  X(cuGraphMemFreeNodeGetParams, 11040)                \
  X(cuDeviceGraphMemTrim, 11040)                       \
  X(cuDeviceGetGraphMemAttribute, 11040)               \
  X(cuDeviceSetGraphMemAttribute, 11040)               \
  X(cuGraphAddChildGraphNode, 10000)                   \
  X(cuGraphAddDependencies, 12030)                     \
  X(cuGraphAddEmptyNode, 10000)                        \
  X(cuGraphAddEventRecordNode, 11010)                  \
  X(cuGraphAddEventWaitNode, 11010)                    \
  X(cuGraphAddHostNode, 10000)                         \
  X(cuGraphAddKernelNode, 12000)                       \
  X(cuGraphAddMemcpyNode, 10000)                       \
  X(cuGraphAddMemsetNode, 10000)                       \
  X(cuGraphChildGraphNodeGetGraph, 10000)              \
  X(cuGraphNodeGetType, 10000)                         \
  X(cuGraphMemsetNodeGetParams, 10000)                 \
  X(cuGraphInstantiateWithParams, 12000)               \
  X(cuGraphKernelNodeGetParams, 12000)                 \
  X(cuGraphKernelNodeSetParams, 12000)                 \
  X(cuGraphExecKernelNodeSetParams, 12000)             \
  X(cuGraphMemcpyNodeGetParams, 10000)                 \
  X(cuGraphMemcpyNodeSetParams, 10000)                 \
  X(cuGraphExecMemcpyNodeSetParams, 10020)             \
  X(cuGraphMemsetNodeSetParams, 10000)                 \
  X(cuGraphExecMemsetNodeSetParams, 10020)             \
  X(cuGraphHostNodeGetParams, 10000)                   \
  X(cuGraphHostNodeSetParams, 10000)                   \
  X(cuGraphExecHostNodeSetParams, 10020)               \
  X(cuGraphEventRecordNodeGetEvent, 11010)             \
  X(cuGraphEventRecordNodeSetEvent, 11010)             \
  X(cuGraphEventWaitNodeGetEvent, 11010)               \
  X(cuGraphEventWaitNodeSetEvent, 11010)               \
  X(cuGraphExecEventRecordNodeSetEvent, 11010)         \
  X(cuGraphExecEventWaitNodeSetEvent, 11010)           \
  X(cuGraphGetRootNodes, 10000)                        \
  X(cuGraphDestroyNode, 10000)                         \
  X(cuGraphNodeFindInClone, 10000)                     \
  X(cuGraphNodeSetEnabled, 11060)                      \
  X(cuGraphNodeGetEnabled, 11060)                      \
  X(cuGraphExecGetFlags, 12000)                        \
  X(cuGraphExecUpdate, 12000)                          \
  X(cuUserObjectCreate, 11030)                         \
  X(cuUserObjectRetain, 11030)                         \
  X(cuUserObjectRelease, 11030)                        \
  X(cuGraphRetainUserObject, 11030)                    \
  X(cuGraphReleaseUserObject, 11030)                   \
  X(cuStreamBeginCaptureToGraph, 12030)                \
  X(cuGraphGetEdges, 12030)                            \
  X(cuGraphNodeGetDependencies, 12030)                 \
  X(cuGraphNodeGetDependentNodes, 12030)               \
  X(cuGraphRemoveDependencies, 12030)                  \
  X(cuStreamUpdateCaptureDependencies, 12030)          \
  X(cuMemAllocManaged, 6000)                           \
  X(cuMemPrefetchAsync, 12020)                         \
  X(cuMemAdvise, 12020)                                \
  X(cuStreamAttachMemAsync, 7000)                      \
  X(cuStreamGetAttribute, 11000)                       \
  X(cuStreamSetAttribute, 11000)                       \
  X(cuStreamCopyAttributes, 11000)                     \
  X(cuProfilerStart, 4000)                             \
  X(cuProfilerStop, 4000)

struct Calls {
#define SEALANE_EMU_FIELD(call, version) decltype(&::call) call = nullptr;
  SEALANE_EMU_DRIVER_CALLS(SEALANE_EMU_FIELD)
#undef SEALANE_EMU_FIELD
};

// The calls whose default stream is the legacy one, and their per-thread twins. nullptr: there is
// no usable driver.
const Calls* legacy_calls();
const Calls* per_thread_calls();

// A function of the driver by cuGetProcAddress_v2 itself.
CUresult find_call(const char* name, void** out, int version, unsigned long long flags,
                   CUdriverProcAddressQueryResult* status);

// A symbol of the driver by dlsym, for what our driver has beyond CUDA. nullptr: not there.
void* find_symbol_of_driver(const char* name);

}  // namespace sealane::emu::runtime
