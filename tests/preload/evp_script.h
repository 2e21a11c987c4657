/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Calls of libcrypto's EVP functions for AES-256-GCM as data, and somebody who makes them and notes
 * what came back. Compiled twice: into a library that by its name is the driver's, whose calls the
 * runtime may answer, and into a program, whose calls are libcrypto's. */
#pragma once

#include <stdint.h>

enum { EVP_SCRIPT_CONTEXTS = 3, EVP_SCRIPT_STORES = 4, EVP_SCRIPT_BYTES = 1024 };

enum evp_call {
  EVP_CALL_INIT,    /* api: _ex, CipherInit_ex, _ex2, CipherInit_ex2, plain, CipherInit; _ex at an
                       address that dlvsym gave */
  EVP_CALL_UPDATE,  /* api: Encrypt, Decrypt, Cipher; Encrypt at an address that dlvsym gave */
  EVP_CALL_FINAL,   /* api: the same, with _ex or (3 more) without; EVP_SealFinal, EVP_OpenFinal */
  EVP_CALL_CIPHER,  /* EVP_Cipher; detail: 0 data, 1 additional data, 2 the end */
  EVP_CALL_CONTROL, /* api: the control's number; bytes: its size */
  EVP_CALL_GET,     /* parameters; detail: see evp_script.c */
  EVP_CALL_SET,
  EVP_CALL_COPY, /* to `other` */
  EVP_CALL_DUP,  /* the same into a new context, where libcrypto has that */
  EVP_CALL_RESET,
  EVP_CALL_RENEW,    /* free and new; detail: 1 new first, which may be where another was */
  EVP_CALL_LENGTHS,  /* of tag and IV */
  EVP_CALL_ENVELOPE, /* api: EVP_SealInit, EVP_OpenInit; detail: 0 for nobody, 1 for nobody's key */
  EVP_CALL_IV,       /* written through EVP_CIPHER_CTX_iv_noconst */
  EVP_CALL_BIO,      /* as update, by libcrypto's own code, with the message's end (detail 2) or
                        without; of no bytes: it sets key and IV */
  EVP_CALL_RANDOM,   /* IVs are made of: 0 a pattern, 1 nothing, it fails, 2 this context's bytes */
  EVP_CALLS
};

/* Where the output of an update lies. */
enum evp_place {
  EVP_PLACE_OWN,   /* in memory of its own, or where the input is (in_place) */
  EVP_PLACE_GONE,  /* in memory that is unmapped when the call has returned */
  EVP_PLACE_BELOW, /* 16 bytes before the input */
  EVP_PLACE_ABOVE  /* 16 bytes behind where it begins */
};

/* Lists of parameters, for init (which has no EVP_LIST_TAG_AND_IV_LENGTH), get and set. */
enum evp_list {
  EVP_LIST_TAG,
  EVP_LIST_TAG_AND_IV_LENGTH,
  EVP_LIST_IV_LENGTH,
  EVP_LIST_IV,      /* get: as it is now; set: tlsivfixed */
  EVP_LIST_UNKNOWN, /* get: an IV made */
  EVP_LIST_EMPTY,
  EVP_LIST_TAG_TWICE,
  EVP_LIST_TAG_OF_WRONG_TYPE,
  EVP_LIST_PADDING,
  EVP_LIST_TLS_ADDITIONAL,
  EVP_LIST_TLS_INVOCATION,
  EVP_LISTS
};

typedef struct evp_op {
  uint8_t call;
  uint8_t context;
  uint8_t other;
  uint8_t api;
  int8_t encrypt; /* 1, 0, -1: as it was */
  uint8_t cipher; /* 0: none, 1: AES-256-GCM, 2: AES-128-GCM, 3: AES-256-CBC */
  uint8_t key;    /* 0: none */
  uint8_t iv;     /* 0: none */
  uint8_t detail; /* init: 0 no parameters, or a list and 1; get, set: a list;
                     update: 0 data, 1 additional, 2 end */
  uint8_t store;  /* where text and tag come from and go to */
  uint8_t opened; /* data comes from the store, not from a pattern */
  uint8_t in_place;
  uint8_t in_child; /* of a fork; for the script nothing has happened */
  int16_t bytes;
  uint16_t offset; /* in the store */
  uint8_t place;   /* of the output; if it is not its own, the data is a pattern, */
  uint16_t kib;    /* so long unless 0 */
} evp_op;

typedef struct evp_outcome {
  int32_t code;
  int32_t bytes;
  uint64_t output; /* a hash of it */
  int8_t sealing;  /* -1: not asked */
  uint32_t error;  /* the first that libcrypto put into its queue */
} evp_outcome;

typedef void evp_script_run(const evp_op* ops, int count, evp_outcome* outcomes);
evp_script_run evp_script_by_driver, evp_script_by_program;
