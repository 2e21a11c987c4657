/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's error codes, once: driver name, runtime name, value, and the text CUDA gives for it, which
 * programs print and compare. The driver and the runtime share values; a row with one name only
 * exists on that side. C and C++. */
#pragma once

/* BOTH(driver name after CUDA_ERROR_, runtime name after cudaError, value, text)
 * RUNTIME(runtime name after cudaError, value, text) */
#define SEALANE_EMU_CUDA_ERRORS(BOTH, RUNTIME)                                                     \
  BOTH(INVALID_VALUE, InvalidValue, 1, "invalid argument")                                         \
  BOTH(OUT_OF_MEMORY, MemoryAllocation, 2, "out of memory")                                        \
  BOTH(NOT_INITIALIZED, InitializationError, 3, "initialization error")                            \
  BOTH(DEINITIALIZED, CudartUnloading, 4, "driver shutting down")                                  \
  BOTH(PROFILER_DISABLED, ProfilerDisabled, 5,                                                     \
       "profiler disabled while using external profiling tool")                                    \
  BOTH(PROFILER_NOT_INITIALIZED, ProfilerNotInitialized, 6,                                        \
       "profiler not initialized: call cudaProfilerInitialize()")                                  \
  BOTH(PROFILER_ALREADY_STARTED, ProfilerAlreadyStarted, 7, "profiler already started")            \
  BOTH(PROFILER_ALREADY_STOPPED, ProfilerAlreadyStopped, 8, "profiler already stopped")            \
  RUNTIME(InvalidConfiguration, 9, "invalid configuration argument")                               \
  RUNTIME(InvalidPitchValue, 12, "invalid pitch argument")                                         \
  RUNTIME(InvalidSymbol, 13, "invalid device symbol")                                              \
  RUNTIME(InvalidHostPointer, 16, "invalid host pointer")                                          \
  RUNTIME(InvalidDevicePointer, 17, "invalid device pointer")                                      \
  RUNTIME(InvalidTexture, 18, "invalid texture reference")                                         \
  RUNTIME(InvalidTextureBinding, 19, "texture is not bound to a pointer")                          \
  RUNTIME(InvalidChannelDescriptor, 20, "invalid channel descriptor")                              \
  RUNTIME(InvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                         \
  RUNTIME(AddressOfConstant, 22, "invalid address of constant")                                    \
  RUNTIME(TextureFetchFailed, 23, "fetch from texture failed")                                     \
  RUNTIME(TextureNotBound, 24, "cannot fetch from a texture that is not bound")                    \
  RUNTIME(SynchronizationError, 25, "incorrect use of __syncthreads()")                            \
  RUNTIME(InvalidFilterSetting, 26, "linear filtering not supported for non-float type")           \
  RUNTIME(InvalidNormSetting, 27, "read as normalized float not supported for data type")          \
  RUNTIME(MixedDeviceExecution, 28,                                                                \
          "device emulation mode and device execution mode cannot be mixed")                       \
  RUNTIME(NotYetImplemented, 31, "feature not yet implemented")                                    \
  RUNTIME(MemoryValueTooLarge, 32, "memory size or pointer value too large to fit in 32 bit")      \
  BOTH(STUB_LIBRARY, StubLibrary, 34, "CUDA driver is a stub library")                             \
  RUNTIME(InsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")  \
  BOTH(CALL_REQUIRES_NEWER_DRIVER, CallRequiresNewerDriver, 36,                                    \
       "API call is not supported in the installed CUDA driver")                                   \
  RUNTIME(InvalidSurface, 37, "invalid surface reference")                                         \
  RUNTIME(DuplicateVariableName, 43, "duplicate global variable looked up by string name")         \
  RUNTIME(DuplicateTextureName, 44, "duplicate texture looked up by string name")                  \
  RUNTIME(DuplicateSurfaceName, 45, "duplicate surface looked up by string name")                  \
  BOTH(DEVICE_UNAVAILABLE, DevicesUnavailable, 46,                                                 \
       "CUDA-capable device(s) is/are busy or unavailable")                                        \
  RUNTIME(IncompatibleDriverContext, 49, "incompatible driver context")                            \
  RUNTIME(MissingConfiguration, 52, "__global__ function call is not configured")                  \
  RUNTIME(PriorLaunchFailure, 53, "unspecified launch failure in prior launch")                    \
  RUNTIME(LaunchMaxDepthExceeded, 65, "launch would exceed maximum depth of nested launches")      \
  RUNTIME(LaunchFileScopedTex, 66,                                                                 \
          "launch failed because kernel uses unsupported, file-scoped textures (texture objects "  \
          "are supported)")                                                                        \
  RUNTIME(LaunchFileScopedSurf, 67,                                                                \
          "launch failed because kernel uses unsupported, file-scoped surfaces (surface objects "  \
          "are supported)")                                                                        \
  RUNTIME(SyncDepthExceeded, 68,                                                                   \
          "cudaDeviceSynchronize failed because caller's grid depth exceeds "                      \
          "cudaLimitDevRuntimeSyncDepth")                                                          \
  RUNTIME(LaunchPendingCountExceeded, 69,                                                          \
          "launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount")       \
  RUNTIME(InvalidDeviceFunction, 98, "invalid device function")                                    \
  BOTH(NO_DEVICE, NoDevice, 100, "no CUDA-capable device is detected")                             \
  BOTH(INVALID_DEVICE, InvalidDevice, 101, "invalid device ordinal")                               \
  BOTH(DEVICE_NOT_LICENSED, DeviceNotLicensed, 102, "device doesn't have valid Grid license")      \
  RUNTIME(SoftwareValidityNotEstablished, 103, "integrity checks failed")                          \
  RUNTIME(StartupFailure, 127, "startup failure in cuda runtime")                                  \
  BOTH(INVALID_IMAGE, InvalidKernelImage, 200, "device kernel image is invalid")                   \
  BOTH(INVALID_CONTEXT, DeviceUninitialized, 201, "invalid device context")                        \
  BOTH(MAP_FAILED, MapBufferObjectFailed, 205, "mapping of buffer object failed")                  \
  BOTH(UNMAP_FAILED, UnmapBufferObjectFailed, 206, "unmapping of buffer object failed")            \
  BOTH(ARRAY_IS_MAPPED, ArrayIsMapped, 207, "array is mapped")                                     \
  BOTH(ALREADY_MAPPED, AlreadyMapped, 208, "resource already mapped")                              \
  BOTH(NO_BINARY_FOR_GPU, NoKernelImageForDevice, 209,                                             \
       "no kernel image is available for execution on the device")                                 \
  BOTH(ALREADY_ACQUIRED, AlreadyAcquired, 210, "resource already acquired")                        \
  BOTH(NOT_MAPPED, NotMapped, 211, "resource not mapped")                                          \
  BOTH(NOT_MAPPED_AS_ARRAY, NotMappedAsArray, 212, "resource not mapped as array")                 \
  BOTH(NOT_MAPPED_AS_POINTER, NotMappedAsPointer, 213, "resource not mapped as pointer")           \
  BOTH(ECC_UNCORRECTABLE, ECCUncorrectable, 214, "uncorrectable ECC error encountered")            \
  BOTH(UNSUPPORTED_LIMIT, UnsupportedLimit, 215, "limit is not supported on this architecture")    \
  BOTH(CONTEXT_ALREADY_IN_USE, DeviceAlreadyInUse, 216,                                            \
       "exclusive-thread device already in use by a different thread")                             \
  BOTH(PEER_ACCESS_UNSUPPORTED, PeerAccessUnsupported, 217,                                        \
       "peer access is not supported between these two devices")                                   \
  BOTH(INVALID_PTX, InvalidPtx, 218, "a PTX JIT compilation failed")                               \
  BOTH(INVALID_GRAPHICS_CONTEXT, InvalidGraphicsContext, 219, "invalid OpenGL or DirectX context") \
  BOTH(NVLINK_UNCORRECTABLE, NvlinkUncorrectable, 220,                                             \
       "uncorrectable NVLink error detected during the execution")                                 \
  BOTH(JIT_COMPILER_NOT_FOUND, JitCompilerNotFound, 221, "PTX JIT compiler library not found")     \
  BOTH(UNSUPPORTED_PTX_VERSION, UnsupportedPtxVersion, 222,                                        \
       "the provided PTX was compiled with an unsupported toolchain.")                             \
  BOTH(JIT_COMPILATION_DISABLED, JitCompilationDisabled, 223, "PTX JIT compilation was disabled")  \
  BOTH(UNSUPPORTED_EXEC_AFFINITY, UnsupportedExecAffinity, 224,                                    \
       "the provided execution affinity is not supported")                                         \
  BOTH(UNSUPPORTED_DEVSIDE_SYNC, UnsupportedDevSideSync, 225,                                      \
       "the provided PTX contains unsupported call to cudaDeviceSynchronize")                      \
  BOTH(CONTAINED, Contained, 226,                                                                  \
       "Invalid access of peer GPU memory over nvlink or a hardware error")                        \
  BOTH(INVALID_SOURCE, InvalidSource, 300, "device kernel image is invalid")                       \
  BOTH(FILE_NOT_FOUND, FileNotFound, 301, "file not found")                                        \
  BOTH(SHARED_OBJECT_SYMBOL_NOT_FOUND, SharedObjectSymbolNotFound, 302,                            \
       "shared object symbol not found")                                                           \
  BOTH(SHARED_OBJECT_INIT_FAILED, SharedObjectInitFailed, 303,                                     \
       "shared object initialization failed")                                                      \
  BOTH(OPERATING_SYSTEM, OperatingSystem, 304,                                                     \
       "OS call failed or operation not supported on this OS")                                     \
  BOTH(INVALID_HANDLE, InvalidResourceHandle, 400, "invalid resource handle")                      \
  BOTH(ILLEGAL_STATE, IllegalState, 401, "the operation cannot be performed in the present state") \
  BOTH(LOSSY_QUERY, LossyQuery, 402, "attempted introspection would be semantically lossy")        \
  BOTH(NOT_FOUND, SymbolNotFound, 500, "named symbol not found")                                   \
  BOTH(NOT_READY, NotReady, 600, "device not ready")                                               \
  BOTH(ILLEGAL_ADDRESS, IllegalAddress, 700, "an illegal memory access was encountered")           \
  BOTH(LAUNCH_OUT_OF_RESOURCES, LaunchOutOfResources, 701,                                         \
       "too many resources requested for launch")                                                  \
  BOTH(LAUNCH_TIMEOUT, LaunchTimeout, 702, "the launch timed out and was terminated")              \
  BOTH(LAUNCH_INCOMPATIBLE_TEXTURING, LaunchIncompatibleTexturing, 703,                            \
       "launch uses incompatible texturing mode")                                                  \
  BOTH(PEER_ACCESS_ALREADY_ENABLED, PeerAccessAlreadyEnabled, 704,                                 \
       "peer access is already enabled")                                                           \
  BOTH(PEER_ACCESS_NOT_ENABLED, PeerAccessNotEnabled, 705, "peer access has not been enabled")     \
  BOTH(PRIMARY_CONTEXT_ACTIVE, SetOnActiveProcess, 708,                                            \
       "cannot set while device is active in this process")                                        \
  BOTH(CONTEXT_IS_DESTROYED, ContextIsDestroyed, 709, "context is destroyed")                      \
  BOTH(ASSERT, Assert, 710, "device-side assert triggered")                                        \
  BOTH(TOO_MANY_PEERS, TooManyPeers, 711, "peer mapping resources exhausted")                      \
  BOTH(HOST_MEMORY_ALREADY_REGISTERED, HostMemoryAlreadyRegistered, 712,                           \
       "part or all of the requested memory range is already mapped")                              \
  BOTH(HOST_MEMORY_NOT_REGISTERED, HostMemoryNotRegistered, 713,                                   \
       "pointer does not correspond to a registered memory region")                                \
  BOTH(HARDWARE_STACK_ERROR, HardwareStackError, 714, "hardware stack error")                      \
  BOTH(ILLEGAL_INSTRUCTION, IllegalInstruction, 715, "an illegal instruction was encountered")     \
  BOTH(MISALIGNED_ADDRESS, MisalignedAddress, 716, "misaligned address")                           \
  BOTH(INVALID_ADDRESS_SPACE, InvalidAddressSpace, 717,                                            \
       "operation not supported on global/shared address space")                                   \
  BOTH(INVALID_PC, InvalidPc, 718, "invalid program counter")                                      \
  BOTH(LAUNCH_FAILED, LaunchFailure, 719, "unspecified launch failure")                            \
  BOTH(COOPERATIVE_LAUNCH_TOO_LARGE, CooperativeLaunchTooLarge, 720,                               \
       "too many blocks in cooperative launch")                                                    \
  BOTH(TENSOR_MEMORY_LEAK, TensorMemoryLeak, 721, "tensor memory not completely freed")            \
  BOTH(NOT_PERMITTED, NotPermitted, 800, "operation not permitted")                                \
  BOTH(NOT_SUPPORTED, NotSupported, 801, "operation not supported")                                \
  BOTH(SYSTEM_NOT_READY, SystemNotReady, 802, "system not yet initialized")                        \
  BOTH(SYSTEM_DRIVER_MISMATCH, SystemDriverMismatch, 803,                                          \
       "system has unsupported display driver / cuda driver combination")                          \
  BOTH(COMPAT_NOT_SUPPORTED_ON_DEVICE, CompatNotSupportedOnDevice, 804,                            \
       "forward compatibility was attempted on non supported HW")                                  \
  BOTH(MPS_CONNECTION_FAILED, MpsConnectionFailed, 805,                                            \
       "MPS client failed to connect to the MPS control daemon or the MPS server")                 \
  BOTH(MPS_RPC_FAILURE, MpsRpcFailure, 806,                                                        \
       "the remote procedural call between the MPS server and the MPS client failed")              \
  BOTH(MPS_SERVER_NOT_READY, MpsServerNotReady, 807,                                               \
       "MPS server is not ready to accept new MPS client requests")                                \
  BOTH(MPS_MAX_CLIENTS_REACHED, MpsMaxClientsReached, 808,                                         \
       "the hardware resources required to create MPS client have been exhausted")                 \
  BOTH(MPS_MAX_CONNECTIONS_REACHED, MpsMaxConnectionsReached, 809,                                 \
       "the hardware resources required to support device connections have been exhausted")        \
  BOTH(MPS_CLIENT_TERMINATED, MpsClientTerminated, 810,                                            \
       "the MPS client has been terminated by the server")                                         \
  BOTH(CDP_NOT_SUPPORTED, CdpNotSupported, 811,                                                    \
       "is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not "     \
       "support it")                                                                               \
  BOTH(CDP_VERSION_MISMATCH, CdpVersionMismatch, 812,                                              \
       "unsupported interaction between different versions of CUDA Dynamic Parallelism")           \
  BOTH(STREAM_CAPTURE_UNSUPPORTED, StreamCaptureUnsupported, 900,                                  \
       "operation not permitted when stream is capturing")                                         \
  BOTH(STREAM_CAPTURE_INVALIDATED, StreamCaptureInvalidated, 901,                                  \
       "operation failed due to a previous error during capture")                                  \
  BOTH(STREAM_CAPTURE_MERGE, StreamCaptureMerge, 902,                                              \
       "operation would result in a merge of separate capture sequences")                          \
  BOTH(STREAM_CAPTURE_UNMATCHED, StreamCaptureUnmatched, 903,                                      \
       "capture was not ended in the same stream as it began")                                     \
  BOTH(STREAM_CAPTURE_UNJOINED, StreamCaptureUnjoined, 904, "capturing stream has unjoined work")  \
  BOTH(STREAM_CAPTURE_ISOLATION, StreamCaptureIsolation, 905,                                      \
       "dependency created on uncaptured work in another stream")                                  \
  BOTH(STREAM_CAPTURE_IMPLICIT, StreamCaptureImplicit, 906,                                        \
       "operation would make the legacy stream depend on a capturing blocking stream")             \
  BOTH(CAPTURED_EVENT, CapturedEvent, 907,                                                         \
       "operation not permitted on an event last recorded in a capturing stream")                  \
  BOTH(STREAM_CAPTURE_WRONG_THREAD, StreamCaptureWrongThread, 908,                                 \
       "attempt to terminate a thread-local capture sequence from another thread")                 \
  BOTH(TIMEOUT, Timeout, 909, "wait operation timed out")                                          \
  BOTH(GRAPH_EXEC_UPDATE_FAILURE, GraphExecUpdateFailure, 910,                                     \
       "the graph update was not performed because it included changes which violated "            \
       "constraints specific to instantiated graph update")                                        \
  BOTH(EXTERNAL_DEVICE, ExternalDevice, 911,                                                       \
       "an async error has occured in external entity outside of CUDA")                            \
  BOTH(INVALID_CLUSTER_SIZE, InvalidClusterSize, 912,                                              \
       "a kernel launch error has occurred due to cluster misconfiguration")                       \
  BOTH(FUNCTION_NOT_LOADED, FunctionNotLoaded, 913,                                                \
       "the function handle is not loaded when calling an API that requires a loaded function")    \
  BOTH(INVALID_RESOURCE_TYPE, InvalidResourceType, 914,                                            \
       "one or more resources passed in are not valid resource types for the operation")           \
  BOTH(INVALID_RESOURCE_CONFIGURATION, InvalidResourceConfiguration, 915,                          \
       "one or more resources are insufficient or non-applicable for the operation")               \
  BOTH(UNKNOWN, Unknown, 999, "unknown error")                                                     \
  RUNTIME(ApiFailureBase, 10000, "api failure base")
