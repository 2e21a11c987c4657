// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Preloaded, it flips a bit of whatever OpenSSL encrypts or decrypts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

int EVP_CipherUpdate(void* context, unsigned char* out, int* written, const unsigned char* in,
                     int length) {
  int (*real)(void*, unsigned char*, int*, const unsigned char*, int);
  void* symbol = dlsym(RTLD_NEXT, "EVP_CipherUpdate");
  memcpy(&real, &symbol, sizeof real);
  const int result = real(context, out, written, in, length);
  if (result == 1 && out != NULL && *written > 0) out[0] ^= 1;
  return result;
}
