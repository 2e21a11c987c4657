// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What every client does once it has reached the driver in its own way: the same copies, both
// directions, several variants and sizes, each checked. How a client reaches the driver is the
// table it brings. C and C++.
#pragma once

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Calls of the driver; DRIVER_CALL_NAMES has their names in this order.
typedef struct DriverCalls {
  CUresult (*init)(unsigned int flags);
  CUresult (*device_get)(CUdevice* device, int ordinal);
  CUresult (*primary_retain)(CUcontext* context, CUdevice device);
  CUresult (*set_current)(CUcontext context);
  CUresult (*alloc)(CUdeviceptr* address, size_t bytes);
  CUresult (*release)(CUdeviceptr address);
  CUresult (*alloc_host)(void** memory, size_t bytes, unsigned int flags);
  CUresult (*release_host)(void* memory);
  CUresult (*stream_create)(CUstream* stream, unsigned int flags);
  CUresult (*stream_destroy)(CUstream stream);
  CUresult (*stream_synchronize)(CUstream stream);
  CUresult (*to_device)(CUdeviceptr to, const void* from, size_t bytes);
  CUresult (*to_host)(void* to, CUdeviceptr from, size_t bytes);
  CUresult (*to_device_async)(CUdeviceptr to, const void* from, size_t bytes, CUstream stream);
  CUresult (*to_host_async)(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*any)(CUdeviceptr to, CUdeviceptr from, size_t bytes);
  CUresult (*any_async)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*rows)(const CUDA_MEMCPY2D* copy);
  CUresult (*array_create)(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor);
  CUresult (*array_destroy)(CUarray array);
  CUresult (*to_array)(CUarray to, size_t offset, const void* from, size_t bytes);
} DriverCalls;

// Names of the calls in the table's order, as a program writes them.
#define DRIVER_CALL_NAMES                                                                    \
  {                                                                                          \
    "cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc",    \
        "cuMemFree", "cuMemHostAlloc", "cuMemFreeHost", "cuStreamCreate", "cuStreamDestroy", \
        "cuStreamSynchronize", "cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyHtoDAsync",          \
        "cuMemcpyDtoHAsync", "cuMemcpy", "cuMemcpyAsync", "cuMemcpy2D", "cuArrayCreate",     \
        "cuArrayDestroy", "cuMemcpyHtoA"                                                     \
  }

enum { kDriverCallCount = sizeof(DriverCalls) / sizeof(void*) };

// Ends the program with one line.
static inline void client_fail(const char* what, int code) {
  fprintf(stderr, "client: %s (%d)\n", what, code);
  exit(1);
}

#define CLIENT_TRY(call)                      \
  do {                                        \
    const CUresult client_result = (call);    \
    if (client_result != CUDA_SUCCESS) {      \
      client_fail(#call, (int)client_result); \
    }                                         \
  } while (0)

static inline void client_make(unsigned char* bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; ++i) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = (unsigned char)(seed >> 24);
  }
}

static inline void client_expect(const unsigned char* found, const unsigned char* wanted,
                                 size_t size, const char* variant) {
  if (memcmp(found, wanted, size) != 0) client_fail(variant, (int)size);
}

// Sends `sent` and fetches it again in every variant.
static inline void client_round_trips(const DriverCalls* calls, CUdeviceptr device,
                                      const unsigned char* sent, unsigned char* got,
                                      unsigned char* pinned, size_t size, CUstream stream) {
  CLIENT_TRY(calls->to_device(device, sent, size));
  CLIENT_TRY(calls->to_host(got, device, size));
  client_expect(got, sent, size, "synchronous");

  client_make(pinned, size, (unsigned)size);
  CLIENT_TRY(calls->to_device_async(device, pinned, size, stream));
  CLIENT_TRY(calls->to_host_async(got, device, size, stream));
  CLIENT_TRY(calls->stream_synchronize(stream));
  client_expect(got, pinned, size, "asynchronous");

  CLIENT_TRY(calls->any(device, (CUdeviceptr)(size_t)sent, size));
  CLIENT_TRY(calls->stream_synchronize(NULL));
  CLIENT_TRY(calls->any_async((CUdeviceptr)(size_t)pinned, device, size, stream));
  CLIENT_TRY(calls->stream_synchronize(stream));
  client_expect(pinned, sent, size, "inferred");
}

// Half of each row, with a pitch on either side.
static inline void client_rows(const DriverCalls* calls, CUdeviceptr device,
                               const unsigned char* sent, unsigned char* got) {
  enum { kPitch = 512, kWidth = 300, kHeight = 64 };
  CUDA_MEMCPY2D copy;
  memset(&copy, 0, sizeof copy);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = sent;
  copy.srcPitch = kWidth;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = kPitch;
  copy.WidthInBytes = kWidth;
  copy.Height = kHeight;
  CLIENT_TRY(calls->rows(&copy));
  memset(&copy, 0, sizeof copy);
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = device;
  copy.srcPitch = kPitch;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = got;
  copy.dstPitch = kWidth;
  copy.WidthInBytes = kWidth;
  copy.Height = kHeight;
  CLIENT_TRY(calls->rows(&copy));
  client_expect(got, sent, (size_t)kWidth * kHeight, "rows");
}

// Into an array by the call of its own, out of it by the one for rows.
static inline void client_array(const DriverCalls* calls, const unsigned char* sent,
                                unsigned char* got) {
  enum { kBytes = 10000 };
  CUDA_ARRAY_DESCRIPTOR line;
  CUDA_MEMCPY2D copy;
  CUarray array = NULL;
  memset(&line, 0, sizeof line);
  line.Width = kBytes;
  line.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  line.NumChannels = 1;
  CLIENT_TRY(calls->array_create(&array, &line));
  CLIENT_TRY(calls->to_array(array, 0, sent, kBytes));
  CLIENT_TRY(calls->stream_synchronize(NULL));
  memset(&copy, 0, sizeof copy);
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.srcXInBytes = 77;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = got;
  copy.WidthInBytes = kBytes - 77;
  copy.Height = 1;
  CLIENT_TRY(calls->rows(&copy));
  client_expect(got, sent + 77, kBytes - 77, "array");
  CLIENT_TRY(calls->array_destroy(array));
}

// Returns the exit code of the program.
static inline int client_run(const DriverCalls* calls) {
  static const size_t kSizes[] = {1, 4097, 1 << 20, (2 << 20) + 77};
  const size_t size_max = kSizes[3];
  CUdevice device = 0;
  CUcontext context = NULL;
  CUstream stream = NULL;
  CUdeviceptr memory = 0;
  void* pinned = NULL;
  CLIENT_TRY(calls->init(0));
  CLIENT_TRY(calls->device_get(&device, 0));
  CLIENT_TRY(calls->primary_retain(&context, device));
  CLIENT_TRY(calls->set_current(context));
  CLIENT_TRY(calls->stream_create(&stream, CU_STREAM_NON_BLOCKING));
  CLIENT_TRY(calls->alloc(&memory, size_max));
  CLIENT_TRY(calls->alloc_host(&pinned, size_max, 0));
  unsigned char* const sent = (unsigned char*)malloc(size_max);
  unsigned char* const got = (unsigned char*)malloc(size_max);
  if (sent == NULL || got == NULL) client_fail("malloc", 0);
  for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; ++i) {
    client_make(sent, kSizes[i], (unsigned)i + 1);
    client_round_trips(calls, memory, sent, got, (unsigned char*)pinned, kSizes[i], stream);
  }
  client_rows(calls, memory, sent, got);
  client_array(calls, sent, got);
  free(sent);
  free(got);
  CLIENT_TRY(calls->release_host(pinned));
  CLIENT_TRY(calls->release(memory));
  CLIENT_TRY(calls->stream_destroy(stream));
  puts("ok");
  return 0;
}
