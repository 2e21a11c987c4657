// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A program linked to libcuda. With CUDA_API_PER_THREAD_DEFAULT_STREAM it uses the per-thread
// twins of the calls. C and C++.
#pragma once

#include "clients/copies.h"

static inline int run_linked(void) {
  const DriverCalls calls = {cuInit,          cuDeviceGet,         cuDevicePrimaryCtxRetain,
                             cuCtxSetCurrent, cuMemAlloc,          cuMemFree,
                             cuMemHostAlloc,  cuMemFreeHost,       cuStreamCreate,
                             cuStreamDestroy, cuStreamSynchronize, cuMemcpyHtoD,
                             cuMemcpyDtoH,    cuMemcpyHtoDAsync,   cuMemcpyDtoHAsync,
                             cuMemcpy,        cuMemcpyAsync,       cuMemcpy2D,
                             cuArrayCreate,   cuArrayDestroy,      cuMemcpyHtoA};
  return client_run(&calls);
}
