/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sealed collectives for programs in C. comm.h says what they promise; this is the same without
 * exceptions. Every function returns SEALANE_OK or a code; sealane_last_error() has the words, per
 * thread, cut to 1,023 characters. A structure starts with its size as the caller was compiled, so
 * that it can grow: initialise it with the matching _init function, which is compiled into the
 * caller and tells the library that size. Fields an older caller lacks count as unset; a field that
 * a newer caller has set and the library does not know is a usage error.
 */
#ifndef SEALANE_SEALANE_H
#define SEALANE_SEALANE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

#define SEALANE_ABI_VERSION 1
#define SEALANE_C_API __attribute__((visibility("default")))

enum {
  SEALANE_OK = 0,
  SEALANE_ERROR_USAGE = 1,
  SEALANE_ERROR_IO = 2,
  SEALANE_ERROR_PEER = 3,
  SEALANE_ERROR_CRYPTO = 4,
  SEALANE_ERROR_INTERNAL = 5
};

enum {
  SEALANE_FLOAT32 = 1,
  SEALANE_FLOAT64 = 2,
  SEALANE_FLOAT16 = 3,
  SEALANE_BFLOAT16 = 4,
  SEALANE_INT32 = 5,
  SEALANE_INT64 = 6,
  SEALANE_UINT8 = 7
};

enum { SEALANE_SUM = 1, SEALANE_AVG = 2, SEALANE_MIN = 3, SEALANE_MAX = 4 };
enum { SEALANE_SEALED = 0, SEALANE_PLAIN = 1 };
enum { SEALANE_TRANSPORT_AUTO = 0, SEALANE_TRANSPORT_SHM = 1, SEALANE_TRANSPORT_TCP = 2 };

/* Strings are copied; NULL means unset, and unset comes from the environment, as do the algorithm
 * (SEALANE_ALGORITHM) and who attests (SEALANE_ATTEST_CMD). */
typedef struct sealane_comm_options {
  size_t struct_bytes;
  int rank; /* -1: from the environment, with size 0 */
  int size;
  const char* group;
  const char* rendezvous;
  const char* key_file;
  const char* certificate_file;
  const char* certificate_key_file;
  const char* authorities_file;
  int mode;
  int transport;
  int64_t timeout_ms; /* 0: unset */
} sealane_comm_options;

typedef struct sealane_comm sealane_comm;
typedef struct sealane_work sealane_work;

/* The ABI of the library that was loaded; equals SEALANE_ABI_VERSION if it fits this header. */
SEALANE_C_API int sealane_abi_version(void);
SEALANE_C_API const char* sealane_last_error(void);

/* Writes struct_bytes bytes and no more. */
SEALANE_C_API void sealane_comm_options_init_sized(sealane_comm_options* options,
                                                   size_t struct_bytes);
static inline void sealane_comm_options_init(sealane_comm_options* options) {
  sealane_comm_options_init_sized(options, sizeof *options);
}

SEALANE_C_API int sealane_comm_create(const sealane_comm_options* options, sealane_comm** comm);
SEALANE_C_API void sealane_comm_destroy(sealane_comm* comm);   /* NULL is fine */
SEALANE_C_API int sealane_comm_rank(const sealane_comm* comm); /* -1 for NULL */
SEALANE_C_API int sealane_comm_size(const sealane_comm* comm); /* -1 for NULL */

SEALANE_C_API int sealane_all_reduce(sealane_comm* comm, const void* in, void* out, size_t count,
                                     int type, int op);
SEALANE_C_API int sealane_reduce(sealane_comm* comm, const void* in, void* out, size_t count,
                                 int type, int op, int root);
SEALANE_C_API int sealane_reduce_scatter(sealane_comm* comm, const void* in, void* out,
                                         size_t count, int type, int op);
SEALANE_C_API int sealane_all_gather(sealane_comm* comm, const void* in, void* out, size_t count,
                                     int type);
SEALANE_C_API int sealane_broadcast(sealane_comm* comm, const void* in, void* out, size_t count,
                                    int type, int root);
SEALANE_C_API int sealane_send(sealane_comm* comm, const void* in, size_t count, int type,
                               int peer);
SEALANE_C_API int sealane_receive(sealane_comm* comm, void* out, size_t count, int type, int peer);
SEALANE_C_API int sealane_barrier(sealane_comm* comm);

/* Asynchronous; the buffers are the library's until sealane_work_wait(), which also frees `work`.
 */
SEALANE_C_API int sealane_start_all_reduce(sealane_comm* comm, const void* in, void* out,
                                           size_t count, int type, int op, sealane_work** work);
SEALANE_C_API int sealane_work_wait(sealane_work* work);

#if defined(__cplusplus)
}
#endif

#endif /* SEALANE_SEALANE_H */
