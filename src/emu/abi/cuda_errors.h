/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's error codes, once: driver name, runtime name, value, and what we say about it. The driver
 * and the runtime share values; a row with one name only exists on that side. C and C++. */
#pragma once

/* BOTH(driver name after CUDA_ERROR_, runtime name after cudaError, value, text)
 * RUNTIME(runtime name after cudaError, value, text) */
#define SEALANE_EMU_CUDA_ERRORS(BOTH, RUNTIME)                                                    \
  BOTH(INVALID_VALUE, InvalidValue, 1, "an argument is out of range")                             \
  BOTH(OUT_OF_MEMORY, MemoryAllocation, 2, "not enough memory")                                   \
  BOTH(NOT_INITIALIZED, InitializationError, 3, "the driver is not initialised in this process")  \
  BOTH(DEINITIALIZED, CudartUnloading, 4, "the driver is shutting down")                          \
  RUNTIME(InvalidConfiguration, 9, "a launch configuration the device cannot run")                \
  RUNTIME(InvalidPitchValue, 12, "the pitch is too small or too large")                           \
  RUNTIME(InvalidSymbol, 13, "no such device symbol")                                             \
  RUNTIME(InvalidDevicePointer, 17, "not a device pointer")                                       \
  RUNTIME(InvalidMemcpyDirection, 21, "the copy direction does not fit its pointers")             \
  RUNTIME(InsufficientDriver, 35, "the driver is older than the runtime")                         \
  BOTH(STUB_LIBRARY, StubLibrary, 34, "this is a stub library, not a driver")                     \
  BOTH(DEVICE_UNAVAILABLE, DevicesUnavailable, 46, "the device is busy or unavailable")           \
  RUNTIME(MissingConfiguration, 52, "a launch without a configuration")                           \
  RUNTIME(InvalidDeviceFunction, 98, "no such kernel for this device")                            \
  BOTH(NO_DEVICE, NoDevice, 100, "there is no CUDA device")                                       \
  BOTH(INVALID_DEVICE, InvalidDevice, 101, "no device with that number")                          \
  BOTH(INVALID_IMAGE, InvalidKernelImage, 200, "the kernel image cannot be read")                 \
  BOTH(INVALID_CONTEXT, DeviceUninitialized, 201, "no valid context is current")                  \
  BOTH(NO_BINARY_FOR_GPU, NoKernelImageForDevice, 209, "the image has no code for this device")   \
  BOTH(ECC_UNCORRECTABLE, ECCUncorrectable, 214, "uncorrectable memory error")                    \
  BOTH(UNSUPPORTED_LIMIT, UnsupportedLimit, 215, "the device has no such limit")                  \
  BOTH(PEER_ACCESS_UNSUPPORTED, PeerAccessUnsupported, 217, "these devices are no peers")         \
  BOTH(CONTAINED, Contained, 226, "the device contained an error; the context is lost")           \
  BOTH(INVALID_SOURCE, InvalidSource, 300, "the kernel source is invalid")                        \
  BOTH(FILE_NOT_FOUND, FileNotFound, 301, "file not found")                                       \
  BOTH(OPERATING_SYSTEM, OperatingSystem, 304, "the operating system refused")                    \
  BOTH(INVALID_HANDLE, InvalidResourceHandle, 400, "not a valid handle")                          \
  BOTH(ILLEGAL_STATE, IllegalState, 401, "the object is not in a state that allows this")         \
  BOTH(NOT_FOUND, SymbolNotFound, 500, "no symbol with that name")                                \
  BOTH(NOT_READY, NotReady, 600, "not finished yet")                                              \
  BOTH(ILLEGAL_ADDRESS, IllegalAddress, 700, "the device used an address it must not use")        \
  BOTH(LAUNCH_OUT_OF_RESOURCES, LaunchOutOfResources, 701, "the launch needs too many resources") \
  BOTH(PEER_ACCESS_ALREADY_ENABLED, PeerAccessAlreadyEnabled, 704, "peer access is enabled")      \
  BOTH(PEER_ACCESS_NOT_ENABLED, PeerAccessNotEnabled, 705, "peer access is not enabled")          \
  BOTH(PRIMARY_CONTEXT_ACTIVE, SetOnActiveProcess, 708, "the primary context is active")          \
  BOTH(CONTEXT_IS_DESTROYED, ContextIsDestroyed, 709, "the context was destroyed")                \
  BOTH(HOST_MEMORY_ALREADY_REGISTERED, HostMemoryAlreadyRegistered, 712, "registered already")    \
  BOTH(HOST_MEMORY_NOT_REGISTERED, HostMemoryNotRegistered, 713, "host memory is not registered") \
  BOTH(MISALIGNED_ADDRESS, MisalignedAddress, 716, "misaligned address")                          \
  BOTH(LAUNCH_FAILED, LaunchFailure, 719, "a kernel failed")                                      \
  BOTH(NOT_PERMITTED, NotPermitted, 800, "not permitted")                                         \
  BOTH(NOT_SUPPORTED, NotSupported, 801, "not supported")                                         \
  BOTH(STREAM_CAPTURE_UNSUPPORTED, StreamCaptureUnsupported, 900, "cannot be captured")           \
  BOTH(STREAM_CAPTURE_INVALIDATED, StreamCaptureInvalidated, 901, "an earlier error broke it")    \
  BOTH(STREAM_CAPTURE_MERGE, StreamCaptureMerge, 902, "would merge two captures")                 \
  BOTH(STREAM_CAPTURE_UNMATCHED, StreamCaptureUnmatched, 903, "capture not begun on this stream") \
  BOTH(STREAM_CAPTURE_UNJOINED, StreamCaptureUnjoined, 904, "forked work did not join")           \
  BOTH(STREAM_CAPTURE_ISOLATION, StreamCaptureIsolation, 905, "depends on work outside")          \
  BOTH(STREAM_CAPTURE_IMPLICIT, StreamCaptureImplicit, 906, "implicit use of the legacy stream")  \
  BOTH(CAPTURED_EVENT, CapturedEvent, 907, "the event was recorded in a capture")                 \
  BOTH(STREAM_CAPTURE_WRONG_THREAD, StreamCaptureWrongThread, 908, "capture of another thread")   \
  BOTH(TIMEOUT, Timeout, 909, "timed out")                                                        \
  BOTH(GRAPH_EXEC_UPDATE_FAILURE, GraphExecUpdateFailure, 910, "the graph changed too much")      \
  BOTH(UNKNOWN, Unknown, 999, "unknown error")
