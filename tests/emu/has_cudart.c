/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A program that has NVIDIA's CUDA runtime inside, as far as the driver can tell: it is opened by
 * its name, asked for cuGetProcAddress and by that for the rest, and then for private tables,
 * without which that runtime gives up. It asks for several, and from two threads, as where several
 * libraries have one inside. Says the driver's error, and exits with 1. */

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static CUresult (*table_of)(const void**, const CUuuid*);

static void* ask(void* refused) {
  for (int i = 0; i < 2; ++i) {
    CUuuid id;
    const void* table = &id;
    memset(&id, 0x5e + i, sizeof id);
    *(CUresult*)refused = table_of(&table, &id);
    if (table != NULL) printf("a table\n");
  }
  return NULL;
}

int main(void) {
  CUresult (*proc_of)(const char*, void**, int, cuuint64_t) = NULL;
  CUresult (*begin)(unsigned) = NULL;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* found = driver != NULL ? dlsym(driver, "cuGetProcAddress") : NULL;
  memcpy(&proc_of, &found, sizeof found);
  if (proc_of == NULL || proc_of("cuInit", &found, 12000, 0) != CUDA_SUCCESS) return 2;
  memcpy(&begin, &found, sizeof found);
  if (proc_of("cuGetExportTable", &found, 12000, 0) != CUDA_SUCCESS) return 2;
  memcpy(&table_of, &found, sizeof found);
  if (begin(0) != CUDA_SUCCESS) return 2;
  pthread_t other;
  CUresult refused = CUDA_SUCCESS;
  CUresult there = CUDA_SUCCESS;
  if (pthread_create(&other, NULL, ask, &there) != 0) return 2;
  ask(&refused);
  pthread_join(other, NULL);
  printf("errors %d, %d\n", (int)refused, (int)there);
  return 1;
}
