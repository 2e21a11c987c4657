/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Keys contexts, seals with them and ends them, as a driver does. The name of this library makes it
 * the driver's. */
#include <openssl/evp.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT EVP_CIPHER_CTX* rekeyed_new(void) { return EVP_CIPHER_CTX_new(); }
EXPORT void rekeyed_empty(EVP_CIPHER_CTX* context) { EVP_CIPHER_CTX_reset(context); }
EXPORT void rekeyed_free(EVP_CIPHER_CTX* context) { EVP_CIPHER_CTX_free(context); }

/* Without a key it goes on with the one it has. */
EXPORT int rekeyed_begin(EVP_CIPHER_CTX* context, const unsigned char* key,
                         const unsigned char* iv) {
  return EVP_EncryptInit_ex(context, key != NULL ? EVP_aes_256_gcm() : NULL, NULL, key, iv);
}

EXPORT int rekeyed_seal(EVP_CIPHER_CTX* context, unsigned char* text, int bytes,
                        unsigned char* tag) {
  int count = 0;
  return EVP_EncryptUpdate(context, text, &count, text, bytes) == 1 &&
         EVP_EncryptFinal_ex(context, text + bytes, &count) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1;
}
