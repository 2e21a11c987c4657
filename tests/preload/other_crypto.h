/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A libcrypto of another make: libcrypto's names without its versions, as BoringSSL, AWS-LC,
 * LibreSSL and copies linked into plugins have them, and objects of another layout. Every function
 * returns a number that OpenSSL would not. */
#pragma once

enum { OTHER_CRYPTO = 4711 };
typedef struct other_context other_context;

other_context* EVP_CIPHER_CTX_new(void);
void EVP_CIPHER_CTX_free(other_context* c);
int EVP_CIPHER_CTX_reset(other_context* c);
int EVP_CIPHER_CTX_copy(other_context* to, const other_context* from);
int EVP_CIPHER_CTX_ctrl(other_context* c, int type, int size, void* data);
int EVP_EncryptInit_ex(other_context* c, const void* cipher, void* engine, const void* key,
                       const void* iv);
int EVP_CipherInit_ex(other_context* c, const void* cipher, void* engine, const void* key,
                      const void* iv, int encrypt);
int EVP_EncryptUpdate(other_context* c, unsigned char* out, int* count, const void* in, int bytes);
int EVP_EncryptFinal_ex(other_context* c, unsigned char* out, int* count);

/* Seals something by the functions above, through the symbol table as everybody does. 1: they were
 * its own. */
int other_crypto_works(void);
