/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Do the calls of a process that brings a libcrypto of its own stay its own? Arguments: a plugin
 * that has one inside, a copy of OpenSSL's at another place, and `driver` to load the driver
 * before. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "preload/other_crypto.h"

static int fail(const char* what) {
  printf("%s\n", what);
  return 1;
}

/* By dlsym, out of everybody's sight: as interpreters and plugins do. */
static int own_openssl_works(const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fail(dlerror()), 0;
  void* (*make)(void) = dlsym(library, "EVP_CIPHER_CTX_new");
  void (*drop)(void*) = dlsym(library, "EVP_CIPHER_CTX_free");
  const void* (*gcm)(void) = dlsym(library, "EVP_aes_256_gcm");
  int (*init)(void*, const void*, void*, const void*, const void*) =
      dlsym(library, "EVP_EncryptInit_ex");
  int (*update)(void*, unsigned char*, int*, const unsigned char*, int) =
      dlsym(library, "EVP_EncryptUpdate");
  int (*final)(void*, unsigned char*, int*) = dlsym(library, "EVP_EncryptFinal_ex");
  Dl_info info;
  if (dladdr((void*)init, &info) == 0 || strcmp(info.dli_fname, file) != 0) return 0;
  unsigned char text[20] = {0}, key[32] = {0}, iv[12] = {0};
  int count = 0;
  void* c = make();
  const int good = init(c, gcm(), NULL, key, iv) == 1 &&
                   update(c, text, &count, text, sizeof text) == 1 && count == sizeof text &&
                   final(c, text, &count) == 1;
  drop(c);
  return good && text[0] == 0xce && text[1] == 0xa7; /* GCM's test case 14 */
}

int main(int argc, char** argv) {
  if (argc < 3) return fail("usage: other_libcrypto PLUGIN LIBCRYPTO [driver]");
  if (argc > 3) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*start)(unsigned) = driver != NULL ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
    if (start == NULL || start(0) != 0) return fail("the driver did not start");
  } else if (dlsym(RTLD_DEFAULT, "cuInit") != NULL) {
    return fail("a driver's function without a driver");
  }
  if (!other_crypto_works()) return fail("another libcrypto's functions were not its own");
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  int (*works)(void) = plugin != NULL ? (int (*)(void))dlsym(plugin, "other_crypto_works") : NULL;
  if (works == NULL || !works()) return fail("a plugin's libcrypto was not its own");
  if (!own_openssl_works(argv[2])) return fail("a second OpenSSL was not itself");
  printf("ok\n");
  return 0;
}
