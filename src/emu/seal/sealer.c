/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0 */

#include "emu/seal/sealer.h"

#include <stdlib.h>
#include <string.h>

#include "emu/seal/evp.h"

struct sealane_emu_sealer {
  const evp_table* evp;
  EVP_CIPHER_CTX* context; /* NULL if every message gets a fresh one */
  int encrypt;
  int updates;
  uint8_t key[32];
};

static int set_key(const sealane_emu_sealer* s, EVP_CIPHER_CTX* context, const uint8_t* iv) {
  return s->encrypt ? s->evp->encrypt_init(context, s->evp->aes_256_gcm(), NULL, s->key, iv)
                    : s->evp->decrypt_init(context, s->evp->aes_256_gcm(), NULL, s->key, iv);
}

static sealane_emu_sealer* create(const uint8_t key[32], int encrypt, int fresh_contexts,
                                  int updates) {
  const evp_table* evp = evp_functions();
  if (evp == NULL) return NULL;
  sealane_emu_sealer* s = calloc(1, sizeof *s);
  if (s == NULL) return NULL;
  s->evp = evp;
  s->encrypt = encrypt;
  s->updates = updates;
  memcpy(s->key, key, sizeof s->key);
  if (fresh_contexts) return s;
  s->context = evp->ctx_new();
  if (s->context == NULL || set_key(s, s->context, NULL) != 1) {
    if (s->context != NULL) evp->ctx_free(s->context);
    free(s);
    return NULL;
  }
  return s;
}

static void destroy(sealane_emu_sealer* s) {
  if (s == NULL) return;
  if (s->context != NULL) s->evp->ctx_free(s->context);
  free(s);
}

/* A context ready for a message: key and IV set, additional data in. */
static EVP_CIPHER_CTX* begin(sealane_emu_sealer* s, const sealane_emu_message* message) {
  EVP_CIPHER_CTX* context = s->context != NULL ? s->context : s->evp->ctx_new();
  if (context == NULL) return NULL;
  int ok = 0;
  if (s->context == NULL) {
    ok = set_key(s, context, message->iv);
  } else if (s->encrypt) {
    ok = s->evp->encrypt_init(context, NULL, NULL, NULL, message->iv);
  } else {
    ok = s->evp->decrypt_init(context, NULL, NULL, NULL, message->iv);
  }
  if (ok == 1 && message->additional_bytes > 0) {
    int none = 0;
    ok = (s->encrypt ? s->evp->encrypt_update : s->evp->decrypt_update)(
        context, NULL, &none, message->additional, (int)message->additional_bytes);
  }
  if (ok == 1) return context;
  if (s->context == NULL) s->evp->ctx_free(context);
  return NULL;
}

static void end(sealane_emu_sealer* s, EVP_CIPHER_CTX* context) {
  if (s->context == NULL) s->evp->ctx_free(context);
}

/* The bytes of a message in `updates` pieces. */
static int update(sealane_emu_sealer* s, EVP_CIPHER_CTX* context,
                  const sealane_emu_message* message) {
  const size_t piece_max = (message->bytes + (size_t)s->updates - 1) / (size_t)s->updates;
  size_t done = 0;
  while (done < message->bytes) {
    const size_t left = message->bytes - done;
    const size_t piece = left < piece_max ? left : piece_max;
    int out = 0;
    const int ok = (s->encrypt ? s->evp->encrypt_update : s->evp->decrypt_update)(
        context, message->out + done, &out, message->in + done, (int)piece);
    if (ok != 1) return 0;
    done += piece;
  }
  return 1;
}

static int seal_message(sealane_emu_sealer* s, sealane_emu_message* message) {
  EVP_CIPHER_CTX* context = begin(s, message);
  if (context == NULL) return 0;
  uint8_t rest[16];
  int none = 0;
  const int ok = update(s, context, message) && s->evp->encrypt_final(context, rest, &none) == 1 &&
                 s->evp->ctx_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, message->tag) == 1;
  end(s, context);
  return ok;
}

static int open_message(sealane_emu_sealer* s, const sealane_emu_message* message) {
  EVP_CIPHER_CTX* context = begin(s, message);
  if (context == NULL) return 0;
  uint8_t tag[16];
  uint8_t rest[16];
  int none = 0;
  memcpy(tag, message->tag, sizeof tag);
  const int ok = update(s, context, message) &&
                 s->evp->ctx_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag) == 1 &&
                 s->evp->decrypt_final(context, rest, &none) == 1;
  end(s, context);
  return ok;
}

const sealane_emu_sealing* sealane_emu_sealing_v1(void) {
  static const sealane_emu_sealing sealing = {sizeof sealing, create, destroy, seal_message,
                                              open_message};
  return &sealing;
}
