/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * libcrypto by the dynamic linker. Used by the helper library and by the linked build of the
 * driver. */

#include <openssl/crypto.h>
#include <stddef.h>

#include "emu/seal/evp.h"

const evp_table* evp_functions(void) {
  static const evp_table table = {
      EVP_CIPHER_CTX_new, EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_ctrl, EVP_aes_256_gcm,
      EVP_EncryptInit_ex, EVP_EncryptUpdate,   EVP_EncryptFinal_ex, EVP_DecryptInit_ex,
      EVP_DecryptUpdate,  EVP_DecryptFinal_ex,
  };
  /* Clients call the driver from exit handlers: if we are libcrypto's first user, it stays. */
  if (OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) != 1) return NULL;
  return &table;
}
