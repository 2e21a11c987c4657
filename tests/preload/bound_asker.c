/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Seals by its own slots and by an address that it asks for by RTLD_DEFAULT: that of the libcrypto
 * it needs, which nobody else may have. Its name makes it the driver's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <openssl/evp.h>

#include "preload/bundled_crypto.h"

static int seals(void) {
  const unsigned char zeros[32] = {0};
  unsigned char text[16] = {0};
  int count = 0;
  int (*const final)(EVP_CIPHER_CTX*, unsigned char*, int*) =
      (int (*)(EVP_CIPHER_CTX*, unsigned char*, int*))dlsym(RTLD_DEFAULT, "EVP_EncryptFinal_ex");
  EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
  const int sealed = EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), NULL, zeros, zeros) == 1 &&
                     EVP_EncryptUpdate(context, text, &count, text, sizeof text) == 1 &&
                     final != NULL && final(context, text, &count) == 1;
  EVP_CIPHER_CTX_free(context);
  return sealed;
}

__attribute__((visibility("default"))) int bundled_call(void) {
  return seals() ? BUNDLED_CRYPTO : 0;
}
__attribute__((visibility("default"))) int bundled_tail_call(void) { return bundled_call(); }
