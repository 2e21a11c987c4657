/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Seals a little as a driver's helper might, by whichever kind of reference it is built with. The
 * names of these libraries make them the driver's. */
#include <openssl/evp.h>

#ifdef BOUND_BY_POINTERS /* in data that is read-only once it is relocated */
typedef struct functions {
  int (*init)(EVP_CIPHER_CTX*, const EVP_CIPHER*, ENGINE*, const unsigned char*,
              const unsigned char*);
  int (*update)(EVP_CIPHER_CTX*, unsigned char*, int*, const unsigned char*, int);
} functions;
static const functions* table(void) {
  static const functions kept = {EVP_EncryptInit_ex, EVP_EncryptUpdate};
  const functions* at = &kept;
  __asm__("" : "+r"(at)); /* the compiler does not know what is in it */
  return at;
}
#define INIT table()->init
#define UPDATE table()->update
#elif defined(BOUND_BY_VARIABLE) /* that has another function in it by now */
static void* volatile variable = (void*)EVP_EncryptFinal_ex;
__attribute__((constructor)) static void set(void) { variable = (void*)EVP_EncryptUpdate; }
#define INIT EVP_EncryptInit_ex
#define UPDATE ((int (*)(EVP_CIPHER_CTX*, unsigned char*, int*, const unsigned char*, int))variable)
#else
#define INIT EVP_EncryptInit_ex
#define UPDATE EVP_EncryptUpdate
#endif

#ifdef BOUND_TO_RESOLVER
int bound_resolved(void);
int (*volatile bound_pointer)(void) = bound_resolved;
#endif

/* A jump, where the compiler can: whoever called this is the caller then. */
__attribute__((visibility("default"))) int bound_begin(EVP_CIPHER_CTX* context,
                                                       const EVP_CIPHER* cipher,
                                                       const unsigned char* key,
                                                       const unsigned char* iv) {
  return INIT(context, cipher, NULL, key, iv);
}

__attribute__((visibility("default"))) int bound_seal(EVP_CIPHER_CTX* context, unsigned char* text,
                                                      int bytes, unsigned char* tag) {
  int count = 0;
#ifdef BOUND_TO_RESOLVER
  if (bound_resolved() != 1 || bound_pointer() != 1) return 0;
#endif
  if (UPDATE(context, text, &count, text, bytes) != 1 || count != bytes) return 0;
  return EVP_EncryptFinal_ex(context, text + bytes, &count) == 1 && count == 0 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1;
}

/* To whoever wants to know without asking. */
__attribute__((weak)) void bound_is_here(int (*begin)(EVP_CIPHER_CTX*, const EVP_CIPHER*,
                                                      const unsigned char*, const unsigned char*),
                                         int (*seal)(EVP_CIPHER_CTX*, unsigned char*, int,
                                                     unsigned char*));
__attribute__((constructor)) static void say(void) {
  if (bound_is_here != NULL) bound_is_here(bound_begin, bound_seal);
}
