/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A C program in which the runtime gets no memory while it serves a call: whatever it throws then
 * must come out as an error code, because these frames cannot be thrown through. Afterwards all
 * goes on. A copy that was asked for before is carried though the runtime's threads get none. */

#define _GNU_SOURCE
#include <cuda.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uintptr_t preload_begin, preload_end;
static __thread int starving, starved, the_programs;
static volatile int others_starve;

extern void* __libc_malloc(size_t bytes);

/* operator new of the runtime calls this, from inside the runtime's own library. */
__attribute__((visibility("default"))) void* malloc(size_t bytes) {
  const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
  if (caller < preload_begin || caller >= preload_end) return __libc_malloc(bytes);
  if (others_starve && !the_programs) return NULL;
  if (!starving) return __libc_malloc(bytes);
  if (--starving > 0) return __libc_malloc(bytes);
  starving = 1;
  ++starved;
  return NULL;
}

static int find_preload(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size, (void)data;
  if (strstr(info->dlpi_name, "libsealane-preload") == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD || (info->dlpi_phdr[i].p_flags & PF_X) == 0) continue;
    preload_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    preload_end = preload_begin + info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

static void done(void* count) { ++*(int*)count; }

enum { BYTES = 300000, ALLOCATIONS_MAX = 60 };
static CUstream stream;
static CUdeviceptr device;
static unsigned char* host;
static int functions;

/* One of each kind of call. */
static CUresult call(int which) {
  static unsigned char pageable[BYTES];
  CUstream other = NULL;
  CUevent event = NULL;
  CUdeviceptr more = 0;
  void* pinned = NULL;
  CUresult code = CUDA_SUCCESS;
  switch (which) {
    case 0:
      return cuMemcpyHtoDAsync(device, host, BYTES, stream);
    case 1:
      return cuMemcpyDtoHAsync(host, device, BYTES, stream);
    case 2:
      return cuMemcpyHtoD(device, pageable, BYTES);
    case 3:
      return cuMemcpyHtoDAsync(device, pageable, 100, stream);
    case 4:
      return cuMemsetD8Async(device, 1, BYTES, stream);
    case 5:
      return cuLaunchHostFunc(stream, done, &functions);
    case 6:
      code = cuMemAllocHost(&pinned, BYTES);
      return code == CUDA_SUCCESS ? cuMemFreeHost(pinned) : code;
    case 7:
      code = cuMemAlloc(&more, BYTES);
      return code == CUDA_SUCCESS ? cuMemFree(more) : code;
    case 8:
      code = cuStreamCreate(&other, CU_STREAM_NON_BLOCKING);
      return code == CUDA_SUCCESS ? cuStreamDestroy(other) : code;
    case 9:
      code = cuEventCreate(&event, 0);
      if (code == CUDA_SUCCESS) code = cuEventRecord(event, stream);
      if (event != NULL) cuEventDestroy(event);
      return code;
    case 10:
      code = cuMemHostRegister(pageable, BYTES, 0);
      return code == CUDA_SUCCESS ? cuMemHostUnregister(pageable) : code;
    case 11:
      return cuStreamSynchronize(stream);
    default:
      return cuCtxSynchronize();
  }
}

static int fail(const char* what, int code) {
  dprintf(1, "%s (%d)\n", what, code); /* a child ends without flushing */
  return 1;
}

static int round_trip(unsigned char value) {
  memset(host, value, BYTES);
  CUresult code = cuMemcpyHtoDAsync(device, host, BYTES, stream);
  if (code == CUDA_SUCCESS) code = cuStreamSynchronize(stream);
  memset(host, 0, BYTES);
  if (code == CUDA_SUCCESS) code = cuMemcpyDtoHAsync(host, device, BYTES, stream);
  if (code == CUDA_SUCCESS) code = cuStreamSynchronize(stream);
  if (code != CUDA_SUCCESS) return fail("a copy failed", code);
  return host[0] == value && host[BYTES - 1] == value ? 0 : fail("wrong bytes", host[0]);
}

/* A runtime that is whole, one call in which it gets no memory from this allocation on, and whether
 * it goes on after. Exit code: 0 nothing was allocated, 1 something is wrong, 2 starved, 3 and
 * refused. */
static int starve(int which, int allocation, int lanes_starve) {
  CUcontext context = NULL;
  void* memory = NULL;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemAlloc(&device, BYTES) != CUDA_SUCCESS ||
      cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      cuMemAllocHost(&memory, BYTES) != CUDA_SUCCESS) {
    return fail("no GPU", 0);
  }
  host = memory;
  the_programs = 1;
  if (round_trip(7) != 0) return 1;
  others_starve = lanes_starve;
  if (round_trip(8) != 0) return 1;
  others_starve = 0;
  starving = allocation;
  const CUresult code = call(which);
  starving = 0;
  if (cuStreamSynchronize(stream) != CUDA_SUCCESS) return fail("the stream failed", code);
  if (round_trip(9) != 0) return 1;
  return starved == 0 ? 0 : code == CUDA_SUCCESS ? 2 : 3;
}

int main(int count, char** arguments) {
  const int lanes_starve = count > 1 && strcmp(arguments[1], "lanes") == 0;
  int all = 0, refused = 0;
  dl_iterate_phdr(find_preload, NULL);
  if (preload_begin == 0) return fail("the runtime is not there", 0);
  for (int which = 0; which < (lanes_starve ? 1 : 13); ++which) {
    for (int allocation = 1, more = 1; more && allocation <= ALLOCATIONS_MAX; ++allocation) {
      const pid_t child = fork();
      if (child == 0) _exit(starve(which, allocation, lanes_starve));
      int status = 0;
      if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) == 1) {
        printf("call %d, allocation %d: ended with %x\n", which, allocation, status);
        return 1;
      }
      more = WEXITSTATUS(status) != 0; /* else it asked for less than that */
      all += WEXITSTATUS(status) != 0;
      refused += WEXITSTATUS(status) == 3;
    }
  }
  if (all == 0) return fail("nothing was starved", refused);
  printf("ok: %d calls got no memory, %d of them refused\n", all, refused);
  return 0;
}
