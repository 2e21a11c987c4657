/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Do the calls of a process that brings a libcrypto of its own stay its own? Arguments: a plugin
 * that has one inside, and `driver` to load the driver before. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "preload/other_crypto.h"

static int fail(const char* what) {
  printf("%s\n", what);
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 2) return fail("usage: other_libcrypto PLUGIN [driver]");
  if (argc > 2) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*start)(unsigned) = driver != NULL ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
    if (start == NULL || start(0) != 0) return fail("the driver did not start");
  } else if (dlsym(RTLD_DEFAULT, "cuInit") != NULL ||
             dlsym(dlopen(NULL, RTLD_NOW), "cuInit") != NULL) {
    return fail("a driver's function without a driver");
  }
  if (!other_crypto_works()) return fail("another libcrypto's functions were not its own");
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  int (*works)(void) = plugin != NULL ? (int (*)(void))dlsym(plugin, "other_crypto_works") : NULL;
  if (works == NULL || !works()) return fail("a plugin's libcrypto was not its own");
  printf("ok\n");
  return 0;
}
