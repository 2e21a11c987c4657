/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Our own declarations of the CUDA driver API: what the emulated GPU implements, under the names
 * and with the layouts of the public ABI, so that a program compiles against this header or
 * NVIDIA's alike. Plain names map to the newest version of a call, as they do there; with
 * CUDA_API_PER_THREAD_DEFAULT_STREAM stream 0 means the calling thread's own. C and C++. */
#pragma once

#include "cuda_types.h"

/* The driver itself defines SEALANE_EMU_DRIVER: it needs every version under its own name. */
#if !defined(SEALANE_EMU_DRIVER)

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define SEALANE_EMU_PTDS(call) call##_ptds
#define SEALANE_EMU_PTSZ(call) call##_ptsz
#else
#define SEALANE_EMU_PTDS(call) call
#define SEALANE_EMU_PTSZ(call) call
#endif

#define cuDeviceTotalMem cuDeviceTotalMem_v2
#define cuCtxCreate cuCtxCreate_v4
#define cuModuleGetGlobal cuModuleGetGlobal_v2
#define cuMemGetInfo cuMemGetInfo_v2
#define cuMemAlloc cuMemAlloc_v2
#define cuMemAllocPitch cuMemAllocPitch_v2
#define cuMemFree cuMemFree_v2
#define cuMemGetAddressRange cuMemGetAddressRange_v2
#define cuMemAllocHost cuMemAllocHost_v2
#define cuMemHostGetDevicePointer cuMemHostGetDevicePointer_v2
#define cuCtxDestroy cuCtxDestroy_v2
#define cuCtxPopCurrent cuCtxPopCurrent_v2
#define cuCtxPushCurrent cuCtxPushCurrent_v2
#define cuStreamDestroy cuStreamDestroy_v2
#define cuEventDestroy cuEventDestroy_v2
#define cuMemHostRegister cuMemHostRegister_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2
#define cuDevicePrimaryCtxSetFlags cuDevicePrimaryCtxSetFlags_v2
#define cuDeviceGetUuid cuDeviceGetUuid_v2
#define cuGetProcAddress cuGetProcAddress_v2
#define cuGraphAddKernelNode cuGraphAddKernelNode_v2
#define cuGraphKernelNodeGetParams cuGraphKernelNodeGetParams_v2
#define cuGraphKernelNodeSetParams cuGraphKernelNodeSetParams_v2
#define cuGraphExecKernelNodeSetParams cuGraphExecKernelNodeSetParams_v2
#define cuGraphAddDependencies cuGraphAddDependencies_v2
#define cuGraphGetEdges cuGraphGetEdges_v2
#define cuGraphNodeGetDependencies cuGraphNodeGetDependencies_v2
#define cuGraphNodeGetDependentNodes cuGraphNodeGetDependentNodes_v2
#define cuGraphRemoveDependencies cuGraphRemoveDependencies_v2
#define cuGraphExecUpdate cuGraphExecUpdate_v2
#define cuMemAdvise cuMemAdvise_v2
#define cuMemPrefetchAsync SEALANE_EMU_PTSZ(cuMemPrefetchAsync_v2)
#define cuEventElapsedTime cuEventElapsedTime_v2
#define cuGraphInstantiate cuGraphInstantiateWithFlags
#define cuArrayCreate cuArrayCreate_v2
#define cuArrayGetDescriptor cuArrayGetDescriptor_v2
#define cuArray3DCreate cuArray3DCreate_v2
#define cuArray3DGetDescriptor cuArray3DGetDescriptor_v2
#define cuMemcpyAtoA SEALANE_EMU_PTDS(cuMemcpyAtoA_v2)
#define cuMemcpyAtoD SEALANE_EMU_PTDS(cuMemcpyAtoD_v2)
#define cuMemcpyAtoH SEALANE_EMU_PTDS(cuMemcpyAtoH_v2)
#define cuMemcpyDtoA SEALANE_EMU_PTDS(cuMemcpyDtoA_v2)
#define cuMemcpyHtoA SEALANE_EMU_PTDS(cuMemcpyHtoA_v2)
#define cuMemcpyAtoHAsync SEALANE_EMU_PTSZ(cuMemcpyAtoHAsync_v2)
#define cuMemcpyHtoAAsync SEALANE_EMU_PTSZ(cuMemcpyHtoAAsync_v2)
#define cuMemcpyHtoD SEALANE_EMU_PTDS(cuMemcpyHtoD_v2)
#define cuMemcpyDtoH SEALANE_EMU_PTDS(cuMemcpyDtoH_v2)
#define cuMemcpyDtoD SEALANE_EMU_PTDS(cuMemcpyDtoD_v2)
#define cuMemcpy2D SEALANE_EMU_PTDS(cuMemcpy2D_v2)
#define cuMemcpy2DUnaligned SEALANE_EMU_PTDS(cuMemcpy2DUnaligned_v2)
#define cuMemcpy3D SEALANE_EMU_PTDS(cuMemcpy3D_v2)
#define cuMemsetD8 SEALANE_EMU_PTDS(cuMemsetD8_v2)
#define cuMemsetD16 SEALANE_EMU_PTDS(cuMemsetD16_v2)
#define cuMemsetD32 SEALANE_EMU_PTDS(cuMemsetD32_v2)
#define cuMemsetD2D8 SEALANE_EMU_PTDS(cuMemsetD2D8_v2)
#define cuMemsetD2D16 SEALANE_EMU_PTDS(cuMemsetD2D16_v2)
#define cuMemsetD2D32 SEALANE_EMU_PTDS(cuMemsetD2D32_v2)
#define cuMemcpyHtoDAsync SEALANE_EMU_PTSZ(cuMemcpyHtoDAsync_v2)
#define cuMemcpyDtoHAsync SEALANE_EMU_PTSZ(cuMemcpyDtoHAsync_v2)
#define cuMemcpyDtoDAsync SEALANE_EMU_PTSZ(cuMemcpyDtoDAsync_v2)
#define cuMemcpy2DAsync SEALANE_EMU_PTSZ(cuMemcpy2DAsync_v2)
#define cuMemcpy3DAsync SEALANE_EMU_PTSZ(cuMemcpy3DAsync_v2)
#define cuMemcpyBatchAsync SEALANE_EMU_PTSZ(cuMemcpyBatchAsync_v2)
#define cuMemcpy3DBatchAsync SEALANE_EMU_PTSZ(cuMemcpy3DBatchAsync_v2)
#define cuStreamBeginCapture SEALANE_EMU_PTSZ(cuStreamBeginCapture_v2)
#define cuStreamWriteValue32 SEALANE_EMU_PTSZ(cuStreamWriteValue32_v2)
#define cuStreamWaitValue32 SEALANE_EMU_PTSZ(cuStreamWaitValue32_v2)
#define cuStreamWriteValue64 SEALANE_EMU_PTSZ(cuStreamWriteValue64_v2)
#define cuStreamWaitValue64 SEALANE_EMU_PTSZ(cuStreamWaitValue64_v2)
#define cuStreamBatchMemOp SEALANE_EMU_PTSZ(cuStreamBatchMemOp_v2)
#define cuStreamGetCaptureInfo SEALANE_EMU_PTSZ(cuStreamGetCaptureInfo_v3)
#define cuStreamUpdateCaptureDependencies SEALANE_EMU_PTSZ(cuStreamUpdateCaptureDependencies_v2)

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define cuMemcpy SEALANE_EMU_PTDS(cuMemcpy)
#define cuMemcpyPeer SEALANE_EMU_PTDS(cuMemcpyPeer)
#define cuMemcpy3DPeer SEALANE_EMU_PTDS(cuMemcpy3DPeer)
#define cuMemcpyAsync SEALANE_EMU_PTSZ(cuMemcpyAsync)
#define cuMemcpyPeerAsync SEALANE_EMU_PTSZ(cuMemcpyPeerAsync)
#define cuMemcpy3DPeerAsync SEALANE_EMU_PTSZ(cuMemcpy3DPeerAsync)
#define cuMemsetD8Async SEALANE_EMU_PTSZ(cuMemsetD8Async)
#define cuMemsetD16Async SEALANE_EMU_PTSZ(cuMemsetD16Async)
#define cuMemsetD32Async SEALANE_EMU_PTSZ(cuMemsetD32Async)
#define cuMemsetD2D8Async SEALANE_EMU_PTSZ(cuMemsetD2D8Async)
#define cuMemsetD2D16Async SEALANE_EMU_PTSZ(cuMemsetD2D16Async)
#define cuMemsetD2D32Async SEALANE_EMU_PTSZ(cuMemsetD2D32Async)
#define cuStreamGetPriority SEALANE_EMU_PTSZ(cuStreamGetPriority)
#define cuStreamGetId SEALANE_EMU_PTSZ(cuStreamGetId)
#define cuStreamGetFlags SEALANE_EMU_PTSZ(cuStreamGetFlags)
#define cuStreamGetDevice SEALANE_EMU_PTSZ(cuStreamGetDevice)
#define cuStreamGetCtx SEALANE_EMU_PTSZ(cuStreamGetCtx)
#define cuStreamWaitEvent SEALANE_EMU_PTSZ(cuStreamWaitEvent)
#define cuStreamEndCapture SEALANE_EMU_PTSZ(cuStreamEndCapture)
#define cuStreamIsCapturing SEALANE_EMU_PTSZ(cuStreamIsCapturing)
#define cuStreamAddCallback SEALANE_EMU_PTSZ(cuStreamAddCallback)
#define cuStreamQuery SEALANE_EMU_PTSZ(cuStreamQuery)
#define cuStreamSynchronize SEALANE_EMU_PTSZ(cuStreamSynchronize)
#define cuEventRecord SEALANE_EMU_PTSZ(cuEventRecord)
#define cuEventRecordWithFlags SEALANE_EMU_PTSZ(cuEventRecordWithFlags)
#define cuLaunchKernel SEALANE_EMU_PTSZ(cuLaunchKernel)
#define cuLaunchKernelEx SEALANE_EMU_PTSZ(cuLaunchKernelEx)
#define cuLaunchHostFunc SEALANE_EMU_PTSZ(cuLaunchHostFunc)
#define cuLaunchCooperativeKernel SEALANE_EMU_PTSZ(cuLaunchCooperativeKernel)
#define cuGraphInstantiateWithParams SEALANE_EMU_PTSZ(cuGraphInstantiateWithParams)
#define cuGraphUpload SEALANE_EMU_PTSZ(cuGraphUpload)
#define cuStreamGetAttribute SEALANE_EMU_PTSZ(cuStreamGetAttribute)
#define cuStreamSetAttribute SEALANE_EMU_PTSZ(cuStreamSetAttribute)
#define cuStreamCopyAttributes SEALANE_EMU_PTSZ(cuStreamCopyAttributes)
#define cuStreamAttachMemAsync SEALANE_EMU_PTSZ(cuStreamAttachMemAsync)
#define cuStreamBeginCaptureToGraph SEALANE_EMU_PTSZ(cuStreamBeginCaptureToGraph)
#define cuGraphLaunch SEALANE_EMU_PTSZ(cuGraphLaunch)
#define cuMemAllocAsync SEALANE_EMU_PTSZ(cuMemAllocAsync)
#define cuMemFreeAsync SEALANE_EMU_PTSZ(cuMemFreeAsync)
#define cuMemAllocFromPoolAsync SEALANE_EMU_PTSZ(cuMemAllocFromPoolAsync)
#endif

#endif /* SEALANE_EMU_DRIVER */

#if defined(__cplusplus)
extern "C" {
#endif

#if !defined(SEALANE_EMU_DRIVER)
/* ---- the driver, devices ---- */
CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int* version);
CUresult cuGetErrorName(CUresult error, const char** name);
CUresult cuGetErrorString(CUresult error, const char** text);
CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status);
CUresult cuGetExportTable(const void** table, const CUuuid* id);
CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGetName(char* name, int length, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device);
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device);
CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice device);
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device);
CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id);
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer);
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from,
                                 CUdevice to);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxReset(CUdevice device);
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active);

/* ---- contexts ---- */
CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams* params, unsigned int flags,
                     CUdevice device);
CUresult cuCtxDestroy(CUcontext context);
CUresult cuCtxPushCurrent(CUcontext context);
CUresult cuCtxPopCurrent(CUcontext* context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxGetDevice(CUdevice* device);
CUresult cuCtxGetFlags(unsigned int* flags);
CUresult cuCtxGetId(CUcontext context, unsigned long long* id);
CUresult cuCtxGetApiVersion(CUcontext context, unsigned int* version);
CUresult cuCtxGetLimit(size_t* value, CUlimit limit);
CUresult cuCtxSetLimit(CUlimit limit, size_t value);
CUresult cuCtxGetCacheConfig(CUfunc_cache* config);
CUresult cuCtxSetCacheConfig(CUfunc_cache config);
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest);
CUresult cuCtxSynchronize(void);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUresult cuCtxDisablePeerAccess(CUcontext peer);

/* ---- memory ---- */
CUresult cuMemGetInfo(size_t* free_bytes, size_t* total_bytes);
CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes);
CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor);
CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray array);
CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor);
CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray array);
CUresult cuArrayDestroy(CUarray array);
CUresult cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width_bytes, size_t height,
                         unsigned int element_bytes);
CUresult cuMemFree(CUdeviceptr address);
CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address);
CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags);
CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUmemLocation location,
                            unsigned int flags, CUstream stream);
CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, unsigned int advice,
                     CUmemLocation location);
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes,
                                unsigned int flags);
CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       unsigned int option);
CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes);
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* list,
                        size_t count);
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address);
CUresult cuMemExportToShareableHandle(void* shared, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shared,
                                        CUmemAllocationHandleType type);
CUresult cuMemAllocHost(void** memory, size_t bytes);
CUresult cuMemFreeHost(void* memory);
CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned int flags);
CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* memory, unsigned int flags);
CUresult cuMemHostGetFlags(unsigned int* flags, void* memory);
CUresult cuMemHostRegister(void* memory, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void* memory);
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address);
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address);
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr address);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device);
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes_to_keep);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count);
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location);
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);

/* ---- copies and fills ---- */
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, size_t bytes);
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes);
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyAtoA(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes);
CUresult cuMemcpyAtoD(CUdeviceptr to, CUarray from, size_t offset, size_t bytes);
CUresult cuMemcpyAtoH(void* to, CUarray from, size_t offset, size_t bytes);
CUresult cuMemcpyDtoA(CUarray to, size_t offset, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoA(CUarray to, size_t offset, const void* from, size_t bytes);
CUresult cuMemcpyAtoHAsync(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoAAsync(CUarray to, size_t offset, const void* from, size_t bytes,
                           CUstream stream);
CUresult cuMemcpy2D(const CUDA_MEMCPY2D* copy);
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* copy);
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream);
CUresult cuMemcpy3D(const CUDA_MEMCPY3D* copy);
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream);
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy);
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream);
CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* attribute_starts,
                            size_t attribute_count, CUstream stream);
CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies,
                              unsigned long long flags, CUstream stream);
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count);
CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count);
CUresult cuMemsetD32(CUdeviceptr to, unsigned int value, size_t count);
CUresult cuMemsetD2D8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                      size_t height);
CUresult cuMemsetD2D16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                       size_t height);
CUresult cuMemsetD2D32(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                       size_t height);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream);
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream);
CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream);
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream);

/* ---- streams and events ---- */
CUresult cuStreamCreate(CUstream* stream, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamGetPriority(CUstream stream, int* priority);
CUresult cuStreamGetFlags(CUstream stream, unsigned int* flags);
CUresult cuStreamGetId(CUstream stream, unsigned long long* id);
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context);
CUresult cuStreamGetDevice(CUstream stream, CUdevice* device);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamGetAttribute(CUstream stream, CUlaunchAttributeID attribute,
                              CUlaunchAttributeValue* value);
CUresult cuStreamSetAttribute(CUstream stream, CUlaunchAttributeID attribute,
                              const CUlaunchAttributeValue* value);
CUresult cuStreamCopyAttributes(CUstream to, CUstream from);
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* user_data,
                             unsigned int flags);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data);
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                             unsigned int flags);
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                             unsigned int flags);
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                              unsigned int flags);
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                              unsigned int flags);
CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count,
                            CUstreamBatchMemOpParams* operations, unsigned int flags);
CUresult cuEventCreate(CUevent* event, unsigned int flags);
CUresult cuEventDestroy(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);

/* ---- modules and kernels ---- */
CUresult cuModuleLoad(CUmodule* module, const char* file);
CUresult cuModuleLoadData(CUmodule* module, const void* image);
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int option_count,
                            CUjit_option* options, void** option_values);
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name);
CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name);
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode);
CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          size_t (*shared_of)(int block_size), size_t shared_bytes,
                                          int limit);
CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params);
CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                               size_t count, CUdeviceptr address);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params);
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address);
CUresult cuDeviceGraphMemTrim(CUdevice device);
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void* value);
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, int attribute, void* value);
CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** option_values,
                      CUlinkState* state);
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes,
                       const char* name, unsigned count, CUjit_option* options,
                       void** option_values);
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                       CUjit_option* options, void** option_values);
CUresult cuLinkComplete(CUlinkState state, void** cubin, size_t* bytes);
CUresult cuLinkDestroy(CUlinkState state);
CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* jit_options,
                           void** jit_values, unsigned int jit_count, CUlibraryOption* options,
                           void** option_values, unsigned int option_count);
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option* jit_options,
                               void** jit_values, unsigned int jit_count, CUlibraryOption* options,
                               void** option_values, unsigned int option_count);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name);
CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library);
CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                            const char* name);
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel);
CUresult cuKernelGetName(const char** name, CUkernel kernel);
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device);
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device);
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes);
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function);
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config);
CUresult cuFuncGetModule(CUmodule* module, CUfunction function);
CUresult cuFuncGetName(const char** name, CUfunction function);
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes);
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function);
CUresult cuFuncLoad(CUfunction function);
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void** arguments, void** extra);
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void** extra);
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                   void** arguments);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                     int block_size, size_t shared_bytes);

/* ---- graphs and capture ---- */
CUresult cuGraphCreate(CUgraph* graph, unsigned int flags);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphClone(CUgraph* clone, CUgraph original);
CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              size_t after_count, const CUDA_MEMCPY3D* copy, CUcontext context);
CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              size_t after_count, const CUDA_MEMSET_NODE_PARAMS* fill,
                              CUcontext context);
CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                            size_t after_count, const CUDA_HOST_NODE_PARAMS* params);
CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              size_t after_count, const CUDA_KERNEL_NODE_PARAMS* params);
CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                             size_t after_count);
CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                  size_t after_count, CUgraph child);
CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                   size_t after_count, CUevent event);
CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                 size_t after_count, CUevent event);
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                const CUgraphEdgeData* edges, size_t count);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count);
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* child);
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params);
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params);
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy);
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* copy);
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params);
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params);
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params);
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params);
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event);
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event);
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event);
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event);
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count);
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges,
                         size_t* count);
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                    size_t* count);
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                      size_t* count);
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edges, size_t count);
CUresult cuGraphDestroyNode(CUgraphNode node);
CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone);
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS* params);
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* copy, CUcontext context);
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context);
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* params);
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event);
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event);
CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled);
CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int* enabled);
CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags);
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info);
CUresult cuUserObjectCreate(CUuserObject* object, void* data, CUhostFn destroy, unsigned int count,
                            unsigned int flags);
CUresult cuUserObjectRetain(CUuserObject object, unsigned int count);
CUresult cuUserObjectRelease(CUuserObject object, unsigned int count);
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                 unsigned int flags);
CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count);
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params);
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status);
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                CUgraph* graph, const CUgraphNode** dependencies,
                                const CUgraphEdgeData** edges, size_t* dependency_count);
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* after,
                                     const CUgraphEdgeData* edges, size_t count,
                                     CUstreamCaptureMode mode);
CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes,
                                           const CUgraphEdgeData* edges, size_t count,
                                           unsigned int flags);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode);
#endif /* SEALANE_EMU_DRIVER */

#if defined(__cplusplus)
}
#endif
