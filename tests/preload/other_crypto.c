/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0 */

#include "preload/other_crypto.h"

#include <stdlib.h>

/* Smaller than OpenSSL's, and without a pointer in it. */
struct other_context {
  char calls;
};

static int called(other_context* c) {
  ++c->calls;
  return OTHER_CRYPTO;
}

other_context* EVP_CIPHER_CTX_new(void) { return calloc(1, sizeof(other_context)); }
void EVP_CIPHER_CTX_free(other_context* c) { free(c); }
int EVP_CIPHER_CTX_reset(other_context* c) { return called(c); }
int EVP_CIPHER_CTX_copy(other_context* to, const other_context* from) {
  to->calls = from->calls;
  return called(to);
}
int EVP_CIPHER_CTX_ctrl(other_context* c, int type, int size, void* data) {
  (void)type, (void)size, (void)data;
  return called(c);
}
int EVP_EncryptInit_ex(other_context* c, const void* cipher, void* engine, const void* key,
                       const void* iv) {
  return EVP_CipherInit_ex(c, cipher, engine, key, iv, 1);
}
int EVP_CipherInit_ex(other_context* c, const void* cipher, void* engine, const void* key,
                      const void* iv, int encrypt) {
  (void)cipher, (void)engine, (void)key, (void)iv, (void)encrypt;
  return called(c);
}
int EVP_EncryptUpdate(other_context* c, unsigned char* out, int* count, const void* in, int bytes) {
  (void)out, (void)in;
  *count = bytes;
  return called(c);
}
int EVP_EncryptFinal_ex(other_context* c, unsigned char* out, int* count) {
  (void)out, (void)count;
  return called(c);
}

int other_crypto_works(void) {
  unsigned char text[16] = {0};
  int count = 0;
  other_context* c = EVP_CIPHER_CTX_new();
  other_context* d = EVP_CIPHER_CTX_new();
  int good = EVP_EncryptInit_ex(c, text, NULL, text, text) == OTHER_CRYPTO;
  good = good && EVP_CIPHER_CTX_ctrl(c, 9, 12, NULL) == OTHER_CRYPTO;
  good = good && EVP_EncryptUpdate(c, text, &count, text, sizeof text) == OTHER_CRYPTO;
  good = good && count == (int)sizeof text;
  good = good && EVP_EncryptFinal_ex(c, text, &count) == OTHER_CRYPTO;
  good = good && EVP_CIPHER_CTX_copy(d, c) == OTHER_CRYPTO;
  good = good && EVP_CIPHER_CTX_reset(c) == OTHER_CRYPTO;
  EVP_CIPHER_CTX_free(c);
  EVP_CIPHER_CTX_free(d);
  return good;
}
