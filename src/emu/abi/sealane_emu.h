/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the emulated GPU offers beyond CUDA: kernels of one's own, device time, and pacing for code
 * that stands for work of the modelled host. All of it is exported by the emulated libcuda.so.1;
 * look it up with dlsym (a real driver has none of it). C and C++.
 *
 * A kernel is a host function, known by its mangled name. A shared object brings kernels: list it
 * in SEALANE_EMU_KERNELS (several: colon-separated); when the driver starts it calls the object's
 *     void sealane_emu_kernels(sealane_emu_register_fn add);
 * A program may also register its own at any time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* One launch, as its kernel sees it. Valid during the call. Runs on a thread of the device, after
 * everything before it in its stream; `arguments` were copied when the launch was asked for. */
typedef struct sealane_emu_launch {
  uint32_t size; /* sizeof(sealane_emu_launch) of the driver; grows only at the end */
  uint32_t device;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  uint32_t argument_count;
  const void* const* arguments; /* one pointer per parameter, to its copied value */

  /* The memory behind `bytes` bytes at a device address: readable and writable until the kernel
   * returns. NULL if they are not inside one live allocation; the context has then failed with
   * CUDA_ERROR_ILLEGAL_ADDRESS, as on a GPU, and the kernel should return. */
  void* (*memory)(const struct sealane_emu_launch* launch, uint64_t address, size_t bytes);

  /* What the kernel costs on the modelled GPU: operations and bytes of device memory moved. Adds
   * up over calls; a kernel that never calls it costs the model's default. */
  void (*charge)(const struct sealane_emu_launch* launch, double operations, double bytes);

  /* Address and size of a __device__ variable of the program, 0 if there is none of that name. */
  uint64_t (*symbol)(const struct sealane_emu_launch* launch, const char* name, size_t* bytes);
} sealane_emu_launch;

typedef void (*sealane_emu_kernel_fn)(const sealane_emu_launch* launch);

typedef struct sealane_emu_kernel {
  uint32_t size;                /* sizeof(sealane_emu_kernel) */
  const char* name;             /* mangled, or plain for extern "C" */
  sealane_emu_kernel_fn run;    /* NULL: takes its time and does nothing */
  const size_t* argument_bytes; /* size of each parameter, in order */
  size_t argument_count;
} sealane_emu_kernel;

/* 0, or 1 if the description is unusable. A second kernel of a name replaces the first. Copies what
 * it is given. Safe from any thread. */
typedef int (*sealane_emu_register_fn)(const sealane_emu_kernel* kernel);
int sealane_emu_register(const sealane_emu_kernel* kernel);

/* Names a __device__ variable for sealane_emu_launch::symbol (the emulated runtime does this). */
int sealane_emu_register_symbol(const char* name, uint64_t address, size_t bytes);

/* Nanoseconds of device time since the driver started: its clock (below) divided by the dilation.
 */
uint64_t sealane_emu_device_ns(void);

/* The clock that `began_ns` below is read from: real nanoseconds, but it stands still while the
 * emulator does what costs the modelled machine nothing (running a kernel as a host function, the
 * device's own verification), and what kept the calling thread from going on in time is not
 * counted: it is where its modelled work is. Unpaced it is CLOCK_MONOTONIC. */
uint64_t sealane_emu_clock_ns(void);

/* The calling thread goes on where other work was at that time: it helps another thread with its
 * work, or has waited for one. A time to come means now. */
void sealane_emu_go_on(uint64_t clock_ns_then);

/* The dilation K: a modelled second takes K real ones. 0 if nothing is paced. */
double sealane_emu_dilation(void);

typedef enum sealane_emu_work {
  SEALANE_EMU_AEAD_STOCK = 0, /* the modelled guest's own libcrypto, one core */
  SEALANE_EMU_AEAD_FAST = 1,  /* the fastest engine the modelled CPU can run, one core */
  SEALANE_EMU_HOST_COPY = 2,  /* a memory copy on one core */
  SEALANE_EMU_DIGEST = 3      /* memory read and digested, to compare it, on one core */
} sealane_emu_work;

/* Makes work that began at `began_ns` take as long as it would on one core of the modelled host:
 * sleeps for what is left. Returns at once if nothing is paced. */
void sealane_emu_pace(sealane_emu_work work, uint64_t bytes, uint64_t began_ns);

/* Short for SEALANE_EMU_AEAD_STOCK: whoever runs AEAD calls on the modelled host's behalf. */
void sealane_emu_pace_aead(uint64_t bytes, uint64_t began_ns);

/* The driver charges its thread for every message it seals or opens. Whoever answers such a call in
 * libcrypto's place says so here, from the same thread, before it returns: those bytes are then not
 * charged to the driver, and the caller paces what it really did. */
void sealane_emu_pace_answered(uint64_t bytes);

/* For tests, in CC mode: makes something happen now, beside what the SEALANE_EMU_* variables say.
 *   "rotate"   every channel has a new key from its next copy on
 *   "message"  the driver sends a message of its own before the next copy to the device
 *   "flip", "drop", "duplicate", "swap", "truncate"
 *              the adversary does that to the next message to the device; with ":to_host" behind
 *              the word, to the next one to the host
 * 0, or 1 if it knows no such thing. Safe from any thread. */
int sealane_emu_disturb(const char* what);

#if defined(__cplusplus)
}
#endif
