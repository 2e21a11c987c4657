/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The libcrypto functions a sealer calls, as a table: filled by the linker (evp_linked.c) or by
 * dlsym (evp_dlsym.c). */
#pragma once

#include <openssl/evp.h>

typedef struct evp_table {
  EVP_CIPHER_CTX* (*ctx_new)(void);
  void (*ctx_free)(EVP_CIPHER_CTX*);
  int (*ctx_ctrl)(EVP_CIPHER_CTX*, int, int, void*);
  const EVP_CIPHER* (*aes_256_gcm)(void);
  int (*encrypt_init)(EVP_CIPHER_CTX*, const EVP_CIPHER*, ENGINE*, const unsigned char*,
                      const unsigned char*);
  int (*encrypt_update)(EVP_CIPHER_CTX*, unsigned char*, int*, const unsigned char*, int);
  int (*encrypt_final)(EVP_CIPHER_CTX*, unsigned char*, int*);
  int (*decrypt_init)(EVP_CIPHER_CTX*, const EVP_CIPHER*, ENGINE*, const unsigned char*,
                      const unsigned char*);
  int (*decrypt_update)(EVP_CIPHER_CTX*, unsigned char*, int*, const unsigned char*, int);
  int (*decrypt_final)(EVP_CIPHER_CTX*, unsigned char*, int*);
} evp_table;

/* NULL if libcrypto cannot be had. */
const evp_table* evp_functions(void);
