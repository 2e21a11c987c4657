/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Seals and opens as a driver's helper might that was written for OpenSSL 3: tags travel as
 * parameters, not by control calls. The name of this library makes it the driver's. */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

static EVP_CIPHER_CTX* begin(int seal, const unsigned char* key, const unsigned char* iv,
                             const OSSL_PARAM* parameters) {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  if (EVP_CipherInit_ex2(context, EVP_aes_256_gcm(), key, iv, seal, parameters) == 1)
    return context;
  EVP_CIPHER_CTX_free(context);
  return NULL;
}

__attribute__((visibility("default"))) int seal_by_parameters(const unsigned char* key,
                                                              const unsigned char* iv,
                                                              const unsigned char* in,
                                                              unsigned char* out, int bytes,
                                                              unsigned char* tag) {
  OSSL_PARAM wanted[] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, 16),
                         OSSL_PARAM_END};
  EVP_CIPHER_CTX* context = begin(1, key, iv, NULL);
  int some = 0;
  int good = context != NULL && EVP_EncryptUpdate(context, out, &some, in, bytes) == 1 &&
             EVP_EncryptFinal_ex(context, out + some, &some) == 1 &&
             EVP_CIPHER_CTX_get_params(context, wanted) == 1;
  EVP_CIPHER_CTX_free(context);
  return good;
}

/* The tag comes with the key, or before the end. */
__attribute__((visibility("default"))) int open_by_parameters(const unsigned char* key,
                                                              const unsigned char* iv,
                                                              const unsigned char* in,
                                                              unsigned char* out, int bytes,
                                                              unsigned char* tag, int early) {
  OSSL_PARAM given[] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, 16),
                        OSSL_PARAM_END};
  EVP_CIPHER_CTX* context = begin(0, key, iv, early ? given : NULL);
  int some = 0;
  int good = context != NULL && EVP_DecryptUpdate(context, out, &some, in, bytes) == 1 &&
             (early || EVP_CIPHER_CTX_set_params(context, given) == 1) &&
             EVP_DecryptFinal_ex(context, out + some, &some) == 1;
  EVP_CIPHER_CTX_free(context);
  return good;
}
