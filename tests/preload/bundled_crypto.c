/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A libcrypto as packages bundle it: under a name of its own, with OpenSSL 3's symbol versions and
 * contexts that are nobody else's. Its functions return a number that OpenSSL would not; where they
 * are no more than a few names, also to a runtime that should leave them alone. Built whole and in
 * part, as a library and within a program. */

#define _GNU_SOURCE
#include "preload/bundled_crypto.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static int answer(const void* caller) {
#ifndef BUNDLED_CRYPTO_IS_WHOLE
  Dl_info info;
  if (dladdr(caller, &info) != 0 && strstr(info.dli_fname, "libsealane-preload") != NULL) return 0;
#endif
  (void)caller;
  return BUNDLED_CRYPTO;
}

#define FUNCTION(name) \
  int name(void);      \
  int name(void) { return answer(__builtin_return_address(0)); }

void* EVP_CIPHER_CTX_new(void);
void* EVP_CIPHER_CTX_new(void) { return malloc(1); }
FUNCTION(EVP_EncryptInit_ex)
FUNCTION(EVP_EncryptUpdate)
FUNCTION(EVP_CIPHER_CTX_reset)

#ifdef BUNDLED_CRYPTO_IS_WHOLE
FUNCTION(EVP_CIPHER_CTX_free)
FUNCTION(EVP_DecryptInit_ex)
FUNCTION(EVP_EncryptInit_ex2)
FUNCTION(EVP_DecryptInit_ex2)
FUNCTION(EVP_EncryptInit)
FUNCTION(EVP_DecryptInit)
FUNCTION(EVP_CipherInit_ex)
FUNCTION(EVP_CipherInit_ex2)
FUNCTION(EVP_CipherInit)
FUNCTION(EVP_SealInit)
FUNCTION(EVP_OpenInit)
FUNCTION(EVP_SealFinal)
FUNCTION(EVP_OpenFinal)
FUNCTION(EVP_DecryptUpdate)
FUNCTION(EVP_CipherUpdate)
FUNCTION(EVP_EncryptFinal_ex)
FUNCTION(EVP_DecryptFinal_ex)
FUNCTION(EVP_CipherFinal_ex)
FUNCTION(EVP_EncryptFinal)
FUNCTION(EVP_DecryptFinal)
FUNCTION(EVP_CipherFinal)
FUNCTION(EVP_Cipher)
FUNCTION(EVP_CIPHER_CTX_ctrl)
FUNCTION(EVP_CIPHER_CTX_get_params)
FUNCTION(EVP_CIPHER_CTX_set_params)
FUNCTION(EVP_CIPHER_CTX_get_tag_length)
FUNCTION(EVP_CIPHER_CTX_copy)
FUNCTION(EVP_CIPHER_CTX_get0_cipher)
FUNCTION(EVP_CIPHER_get_nid)
FUNCTION(EVP_CIPHER_get0_provider)
FUNCTION(OSSL_PROVIDER_get0_name)
FUNCTION(EVP_CIPHER_CTX_is_encrypting)
FUNCTION(EVP_CIPHER_CTX_get_iv_length)
#endif
