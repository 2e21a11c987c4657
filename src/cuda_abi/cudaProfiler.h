/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Our own declarations of the driver's profiler control: a program brackets what it measures. */
#pragma once

#include "cuda.h"

#if defined(__cplusplus)
extern "C" {
#endif

CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);

#if defined(__cplusplus)
}
#endif
