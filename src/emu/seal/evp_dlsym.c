/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * libcrypto by dlopen and dlsym, function by function. */

#include <dlfcn.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "emu/seal/evp.h"

static evp_table table;
static int complete;

static int find(void* library, const char* name, void* slot) {
  void* function = dlsym(library, name);
  memcpy(slot, &function, sizeof function);
  return function != NULL;
}

static void load(void) {
  void* library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "sealane emulated GPU: %s\n", dlerror());
    return;
  }
  int (*init)(uint64_t, const void*) = NULL;
  if (find(library, "OPENSSL_init_crypto", &init)) init(OPENSSL_INIT_NO_ATEXIT, NULL);
  complete = find(library, "EVP_CIPHER_CTX_new", &table.ctx_new) &&
             find(library, "EVP_CIPHER_CTX_free", &table.ctx_free) &&
             find(library, "EVP_CIPHER_CTX_ctrl", &table.ctx_ctrl) &&
             find(library, "EVP_aes_256_gcm", &table.aes_256_gcm) &&
             find(library, "EVP_EncryptInit_ex", &table.encrypt_init) &&
             find(library, "EVP_EncryptUpdate", &table.encrypt_update) &&
             find(library, "EVP_EncryptFinal_ex", &table.encrypt_final) &&
             find(library, "EVP_DecryptInit_ex", &table.decrypt_init) &&
             find(library, "EVP_DecryptUpdate", &table.decrypt_update) &&
             find(library, "EVP_DecryptFinal_ex", &table.decrypt_final);
}

const evp_table* evp_functions(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return complete ? &table : NULL;
}
