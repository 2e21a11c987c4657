/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Does a plugin with a bundled libcrypto reach that one, and nobody else's, and can it be unloaded?
 *   bundled_libcrypto tail-call PLUGIN      its functions jump to libcrypto's
 *   bundled_libcrypto later-global PLUGIN   another libcrypto is loaded for everybody afterwards
 *   bundled_libcrypto call PLUGIN           from its own code
 *   bundled_libcrypto lazy-call PLUGIN      each address is looked for when it is called
 *   bundled_libcrypto stood-in PLUGIN       somebody who stands in for dlopen is called
 *   bundled_libcrypto unload PLUGIN         is gone when it is closed, and its libcrypto too
 *   bundled_libcrypto own-openssl LIBCRYPTO is OpenSSL's at another place itself?
 * A third argument, `driver`, starts the driver before; a fourth is a library of the driver's that
 * is loaded then. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "preload/bundled_crypto.h"

static int fail(const char* what) {
  printf("%s\n", what);
  return 1;
}

static int starts_driver(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*start)(unsigned) = driver != NULL ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
  return start != NULL && start(0) == 0;
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

static int is_bundled(struct dl_phdr_info* info, size_t size, void* count) {
  (void)size;
  *(int*)count += strstr(info->dlpi_name, "bundled") != NULL;
  return 0;
}

static int bundled_objects(void) {
  int count = 0;
  dl_iterate_phdr(is_bundled, &count);
  return count;
}

int main(int argc, char** argv) {
  if (argc < 3) return fail("usage: bundled_libcrypto WHAT PLUGIN [driver]");
  if (argc > 3 && !starts_driver()) return fail("the driver did not start");
  if (argc > 4 && dlopen(argv[4], RTLD_NOW | RTLD_LOCAL) == NULL) return fail(dlerror());
  if (strcmp(argv[1], "own-openssl") == 0) {
    return own_openssl_works(argv[2]) ? printf("ok\n"), 0 : fail("a second OpenSSL was not itself");
  }
  if (strcmp(argv[1], "stood-in") == 0) {
    const int* opened = dlsym(RTLD_DEFAULT, "beside_opened");
    void* any = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    if (any == NULL || opened == NULL || *opened == 0) return fail("nobody stood in");
    return printf("ok\n"), 0;
  }
  const int before = bundled_objects();
  const int lazy = strcmp(argv[1], "lazy-call") == 0;
  void* plugin = dlopen(argv[2], (lazy ? RTLD_LAZY : RTLD_NOW) | RTLD_LOCAL);
  if (plugin == NULL) return fail(dlerror());
  int (*call)(void) = (int (*)(void))dlsym(plugin, "bundled_call");
  int (*tail_call)(void) = (int (*)(void))dlsym(plugin, "bundled_tail_call");
  if (dlerror() != NULL) return fail("an error that nobody made");
  if (strcmp(argv[1], "later-global") == 0 &&
      dlopen("libcrypto.so.3", RTLD_NOW | RTLD_GLOBAL) == NULL) {
    return fail(dlerror());
  }
  const int tail = strcmp(argv[1], "tail-call") == 0;
  if ((tail ? tail_call : call)() != BUNDLED_CRYPTO) return fail("it reached another libcrypto");
  if (bundled_objects() == before) return fail("the plugin is not known by its name");
  dlclose(plugin);
  if (strcmp(argv[1], "unload") == 0 && bundled_objects() != before) return fail("it stays");
  printf("ok\n");
  return 0;
}
