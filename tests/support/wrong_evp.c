// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Preloaded, it flips a bit of whatever a driver seals.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

int EVP_EncryptUpdate(void* context, unsigned char* out, int* written, const unsigned char* in,
                      int length) {
  int (*real)(void*, unsigned char*, int*, const unsigned char*, int);
  void* symbol = dlsym(dlopen("libcrypto.so.3", RTLD_NOW), "EVP_EncryptUpdate");
  memcpy(&real, &symbol, sizeof real);
  const int result = real(context, out, written, in, length);
  if (result == 1 && out != NULL && *written > 0) out[0] ^= 1;
  return result;
}
