/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#define OPENSSL_SUPPRESS_DEPRECATED
#include "preload/evp_script.h"

#include <dlfcn.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct store {
  unsigned char text[EVP_SCRIPT_BYTES];
  unsigned char tag[16];
} store;

typedef struct state {
  EVP_CIPHER_CTX* contexts[EVP_SCRIPT_CONTEXTS];
  store stores[EVP_SCRIPT_STORES];
} state;

static uint64_t hash(uint64_t before, const unsigned char* bytes, int count) {
  uint64_t h = before ^ 0xcbf29ce484222325u;
  for (int i = 0; i < count; ++i) h = (h ^ bytes[i]) * 0x100000001b3u;
  return h;
}

static void pattern(unsigned char* out, int count, unsigned seed) {
  for (int i = 0; i < count; ++i) out[i] = (unsigned char)(seed * 37 + (unsigned)i * 11 + 5);
}

static const EVP_CIPHER* cipher_of(const evp_op* op) {
  switch (op->cipher) {
    case 1:
      return EVP_aes_256_gcm();
    case 2:
      return EVP_aes_128_gcm();
    case 3:
      return EVP_aes_256_cbc();
    default:
      return NULL;
  }
}

typedef struct values {
  unsigned char data[64], other[64];
  size_t length;
  unsigned none;
  OSSL_PARAM list[4];
} values;

/* What is set. A tag is the store's, or a wrong one; the second of two is what the first is not. */
static const OSSL_PARAM* to_set(state* s, const evp_op* op, int kind, values* v) {
  const size_t size = (size_t)(op->bytes > 0 ? op->bytes : 0);
  const store* at = &s->stores[op->store];
  OSSL_PARAM* next = v->list;
  v->length = size;
  v->none = 0;
  pattern(v->data, sizeof v->data, op->offset);
  pattern(v->other, sizeof v->other, op->offset);
  memcpy(op->opened ? v->data : v->other, at->tag, 16);
  if (kind == EVP_LIST_TAG || kind == EVP_LIST_TAG_AND_IV_LENGTH || kind == EVP_LIST_TAG_TWICE)
    *next++ = OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, v->data, size);
  if (kind == EVP_LIST_TAG_TWICE)
    *next++ = OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, v->other, size);
  if (kind == EVP_LIST_TAG_OF_WRONG_TYPE)
    *next++ = OSSL_PARAM_construct_utf8_string(OSSL_CIPHER_PARAM_AEAD_TAG, (char*)v->data, size);
  if (kind == EVP_LIST_TAG_AND_IV_LENGTH || kind == EVP_LIST_IV_LENGTH)
    *next++ = OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_AEAD_IVLEN, &v->length);
  if (kind == EVP_LIST_IV)
    *next++ =
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, v->data, size);
  if (kind == EVP_LIST_UNKNOWN) *next++ = OSSL_PARAM_construct_uint("no such parameter", &v->none);
  if (kind == EVP_LIST_PADDING)
    *next++ = OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &v->none);
  if (kind == EVP_LIST_TLS_ADDITIONAL)
    *next++ = OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD, v->data, 13);
  if (kind == EVP_LIST_TLS_INVOCATION)
    *next++ = OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_SET_IV_INV, v->data, 8);
  *next = OSSL_PARAM_construct_end();
  return v->list;
}

/* Not from a slot of this library's: nobody stands in front of it. */
static void find(const char* name, void* function) {
  void* const address = dlvsym(RTLD_DEFAULT, name, "OPENSSL_3.0.0");
  memcpy(function, &address, sizeof address);
}

static void init(state* s, const evp_op* op, evp_outcome* o) {
  EVP_CIPHER_CTX* c = s->contexts[op->context];
  const EVP_CIPHER* cipher = cipher_of(op);
  unsigned char key_bytes[64], iv_bytes[64];
  pattern(key_bytes, sizeof key_bytes, 100u + op->key);
  pattern(iv_bytes, sizeof iv_bytes, 200u + op->iv);
  const unsigned char* key = op->key ? key_bytes : NULL;
  const unsigned char* iv = op->iv ? iv_bytes : NULL;
  values v;
  const OSSL_PARAM* list = op->detail != 0 ? to_set(s, op, op->detail - 1, &v) : NULL;
  int (*found)(EVP_CIPHER_CTX*, const EVP_CIPHER*, ENGINE*, const unsigned char*,
               const unsigned char*) = NULL;
  switch (op->api) {
    case 0:
      o->code = op->encrypt ? EVP_EncryptInit_ex(c, cipher, NULL, key, iv)
                            : EVP_DecryptInit_ex(c, cipher, NULL, key, iv);
      break;
    case 1:
      o->code = EVP_CipherInit_ex(c, cipher, NULL, key, iv, op->encrypt);
      break;
    case 2:
      o->code = op->encrypt ? EVP_EncryptInit_ex2(c, cipher, key, iv, list)
                            : EVP_DecryptInit_ex2(c, cipher, key, iv, list);
      break;
    case 3:
      o->code = EVP_CipherInit_ex2(c, cipher, key, iv, op->encrypt, list);
      break;
    case 4:
      o->code =
          op->encrypt ? EVP_EncryptInit(c, cipher, key, iv) : EVP_DecryptInit(c, cipher, key, iv);
      break;
    case 6:
      find("EVP_EncryptInit_ex", &found);
      if (found != NULL) o->code = found(c, cipher, NULL, key, iv);
      break;
    default:
      o->code = EVP_CipherInit(c, cipher, key, iv, op->encrypt);
      break;
  }
  o->sealing = (int8_t)EVP_CIPHER_CTX_is_encrypting(c);
}

/* The bytes of a call: in, and where they go. `private` holds the input. */
static const unsigned char* input(state* s, const evp_op* op, unsigned char* private) {
  if (op->opened) {
    memcpy(private, s->stores[op->store].text + op->offset, (size_t)op->bytes);
  } else {
    pattern(private, op->bytes, op->offset + op->store * 7u);
  }
  return private;
}

static void update(state* s, const evp_op* op, evp_outcome* o) {
  EVP_CIPHER_CTX* c = s->contexts[op->context];
  unsigned char private[EVP_SCRIPT_BYTES];
  unsigned char in_place[EVP_SCRIPT_BYTES + 32];
  const unsigned char* in = input(s, op, private);
  unsigned char* out = in_place;
  memset(in_place, 0, sizeof in_place);
  if (op->in_place) in = memcpy(in_place, in, (size_t)op->bytes);
  if (op->detail == 1) out = NULL;
  if (op->detail == 2) in = NULL;
  int count = -7;
  int (*found)(EVP_CIPHER_CTX*, unsigned char*, int*, const unsigned char*, int) = NULL;
  if (op->call == EVP_CALL_CIPHER) {
    o->code = EVP_Cipher(c, out, in, (unsigned)op->bytes);
    count = op->bytes;
  } else if (op->api == 0) {
    o->code = EVP_EncryptUpdate(c, out, &count, in, op->bytes);
  } else if (op->api == 1) {
    o->code = EVP_DecryptUpdate(c, out, &count, in, op->bytes);
  } else if (op->api == 3) {
    find("EVP_EncryptUpdate", &found);
    if (found != NULL) o->code = found(c, out, &count, in, op->bytes);
  } else {
    o->code = EVP_CipherUpdate(c, out, &count, in, op->bytes);
  }
  o->bytes = count;
  if (o->code <= 0 || op->detail != 0) return;
  o->output = hash(0, in_place, op->bytes);
  if (!op->opened) memcpy(s->stores[op->store].text + op->offset, in_place, (size_t)op->bytes);
}

/* In one mapping: input, output, and room around both. */
static void update_placed(state* s, const evp_op* op, evp_outcome* o) {
  EVP_CIPHER_CTX* c = s->contexts[op->context];
  const int bytes = op->kib ? op->kib << 10 : op->bytes;
  const size_t room = 4096, size = 3 * room + 2 * (size_t)bytes;
  unsigned char* memory =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  unsigned char* in = memory + room;
  unsigned char* out = in + bytes + room;
  if (op->place == EVP_PLACE_BELOW) out = in - 16;
  if (op->place == EVP_PLACE_ABOVE) out = in + 16;
  pattern(in, bytes, op->offset);
  int count = -7;
  o->code = op->api == 0 ? EVP_EncryptUpdate(c, out, &count, in, bytes)
                         : EVP_DecryptUpdate(c, out, &count, in, bytes);
  o->bytes = count;
  if (o->code > 0) o->output = hash(0, out, bytes);
  munmap(memory, size);
}

static void final(state* s, const evp_op* op, evp_outcome* o) {
  EVP_CIPHER_CTX* c = s->contexts[op->context];
  unsigned char rest[64] = {0};
  int count = -7;
  switch (op->api) {
    case 0:
      o->code = EVP_EncryptFinal_ex(c, rest, &count);
      break;
    case 1:
      o->code = EVP_DecryptFinal_ex(c, rest, &count);
      break;
    case 2:
      o->code = EVP_CipherFinal_ex(c, rest, &count);
      break;
    case 3:
      o->code = EVP_EncryptFinal(c, rest, &count);
      break;
    case 4:
      o->code = EVP_DecryptFinal(c, rest, &count);
      break;
    case 6:
      o->code = EVP_SealFinal(c, rest, &count);
      break;
    case 7:
      o->code = EVP_OpenFinal(c, rest, &count);
      break;
    default:
      o->code = EVP_CipherFinal(c, rest, &count);
      break;
  }
  o->bytes = count;
}

static void control(state* s, const evp_op* op, evp_outcome* o) {
  unsigned char data[64];
  store* at = &s->stores[op->store];
  pattern(data, sizeof data, op->offset);
  if (op->api == EVP_CTRL_AEAD_SET_TAG && op->opened) memcpy(data, at->tag, 16);
  if (op->api == EVP_CTRL_AEAD_GET_TAG) memset(data, 0, sizeof data);
  o->code = EVP_CIPHER_CTX_ctrl(s->contexts[op->context], op->api, op->bytes,
                                op->detail == 1 ? NULL : data);
  o->output = hash(0, data, sizeof data);
  if (op->api == EVP_CTRL_AEAD_GET_TAG && o->code > 0 && op->bytes <= 16) memcpy(at->tag, data, 16);
}

static void get(state* s, const evp_op* op, evp_outcome* o) {
  unsigned char tag[32] = {0}, other[32] = {0}, iv[128] = {0};
  size_t length = 0, n = 0;
  unsigned padding = 0;
  const size_t size = (size_t)(op->bytes > 0 ? op->bytes : 0);
  const int kind = op->detail;
  OSSL_PARAM list[4];
  if (kind <= EVP_LIST_TAG_AND_IV_LENGTH || kind == EVP_LIST_TAG_TWICE)
    list[n++] = OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, size);
  if (kind == EVP_LIST_TAG_TWICE)
    list[n++] = OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, other, size);
  if (kind == EVP_LIST_TAG_OF_WRONG_TYPE)
    list[n++] = OSSL_PARAM_construct_utf8_string(OSSL_CIPHER_PARAM_AEAD_TAG, (char*)tag, size);
  if (kind == EVP_LIST_TAG_AND_IV_LENGTH || kind == EVP_LIST_IV_LENGTH)
    list[n++] = OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_AEAD_IVLEN, &length);
  if (kind == EVP_LIST_IV)
    list[n++] = OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_UPDATED_IV, iv, sizeof iv);
  if (kind == EVP_LIST_UNKNOWN)
    list[n++] = OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN, iv, size);
  if (kind == EVP_LIST_PADDING)
    list[n++] = OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &padding);
  list[n] = OSSL_PARAM_construct_end();
  o->code = EVP_CIPHER_CTX_get_params(s->contexts[op->context], list);
  if (o->code <= 0) return;
  o->output = hash(hash(length, tag, sizeof tag), iv, sizeof iv);
  for (size_t i = 0; i < n; ++i) o->output = o->output * 31 + list[i].return_size;
  o->output += hash(0, other, sizeof other);
  if (kind == EVP_LIST_TAG && size == 16) memcpy(s->stores[op->store].tag, tag, 16);
}

static void set(state* s, const evp_op* op, evp_outcome* o) {
  values v;
  o->code = EVP_CIPHER_CTX_set_params(s->contexts[op->context], to_set(s, op, op->detail, &v));
}

static void duplicate(state* s, const evp_op* op, evp_outcome* o) {
#if OPENSSL_VERSION_NUMBER >= 0x30100000L
  EVP_CIPHER_CTX* made = EVP_CIPHER_CTX_dup(s->contexts[op->context]);
  o->code = made != NULL;
  if (made == NULL) return;
  EVP_CIPHER_CTX_free(s->contexts[op->other]);
  s->contexts[op->other] = made;
#else
  o->code = EVP_CIPHER_CTX_copy(s->contexts[op->other], s->contexts[op->context]);
#endif
}

/* For nobody, these set no more than the cipher. For a person without a key, sealing takes a key
 * and an IV of its own and fails then. */
static void envelope(state* s, const evp_op* op, evp_outcome* o) {
  EVP_CIPHER_CTX* c = s->contexts[op->context];
  unsigned char key[EVP_MAX_KEY_LENGTH], iv[EVP_MAX_IV_LENGTH];
  unsigned char* keys[1] = {key};
  EVP_PKEY* people[1] = {NULL};
  int key_bytes = 0;
  if (op->api != 0) {
    o->code = EVP_OpenInit(c, cipher_of(op), NULL, 0, NULL, NULL);
  } else {
    const int fits = op->cipher != 0 || EVP_CIPHER_CTX_get_iv_length(c) <= EVP_MAX_IV_LENGTH;
    const int count = op->detail == 1 && fits;
    o->code = EVP_SealInit(c, cipher_of(op), keys, &key_bytes, iv, people, count);
  }
  o->sealing = (int8_t)EVP_CIPHER_CTX_is_encrypting(c);
}

static void write_iv(state* s, const evp_op* op, evp_outcome* o) {
  EVP_CIPHER_CTX* c = s->contexts[op->context];
  unsigned char* iv = EVP_CIPHER_CTX_iv_noconst(c);
  o->code = iv != NULL;
  if (iv != NULL) pattern(iv, 12, 200u + op->iv);
}

/* The context is lent to a BIO, as a copy that comes back. */
static void by_bio(state* s, const evp_op* op, evp_outcome* o) {
  EVP_CIPHER_CTX *c = s->contexts[op->context], *lent = NULL;
  unsigned char private[EVP_SCRIPT_BYTES], key[64], iv[128];
  unsigned char* made = NULL;
  BIO *bio = BIO_new(BIO_f_cipher()), *memory = BIO_new(BIO_s_mem());
  BIO_push(bio, memory);
  BIO_get_cipher_ctx(bio, &lent);
  if (EVP_CIPHER_CTX_copy(lent, c) == 1) {
    pattern(key, sizeof key, 100u + op->key);
    pattern(iv, sizeof iv, 200u + op->iv);
    o->code = op->bytes == 0
                  ? BIO_set_cipher(bio, NULL, op->key ? key : NULL, op->iv ? iv : NULL, -1)
                  : BIO_write(bio, input(s, op, private), op->bytes) > 0 &&
                        (op->detail != 2 || BIO_flush(bio) == 1);
    o->bytes = (int)BIO_get_mem_data(memory, &made);
    o->output = hash(0, made, o->bytes);
    if (o->code && o->bytes == op->bytes)
      memcpy(s->stores[op->store].text + op->offset, made, (size_t)op->bytes);
    EVP_CIPHER_CTX_copy(c, lent);
  }
  BIO_free_all(bio);
}

static EVP_CIPHER_CTX* drawn_from;
static int draw(unsigned char* out, int count) {
  const unsigned char zeros[64] = {0};
  int made = 0;
  return EVP_EncryptUpdate(drawn_from, out, &made, zeros, count < 64 ? count : 64);
}

/* The program's generator takes the way to draw for a seed. */
static void draw_from(state* s, const evp_op* op) {
  int (*const way)(unsigned char*, int) = draw;
  drawn_from = s->contexts[op->context];
  RAND_seed(&way, op->detail == 2 ? (int)sizeof way : op->detail);
}

/* Other ciphers crash where GCM has a meaning for no memory. */
static int is_gcm(const EVP_CIPHER_CTX* c) {
  const EVP_CIPHER* cipher = EVP_CIPHER_CTX_get0_cipher(c);
  return cipher != NULL && EVP_CIPHER_get_mode(cipher) == EVP_CIPH_GCM_MODE;
}

static void step(state* s, const evp_op* op, evp_outcome* o) {
  EVP_CIPHER_CTX **c = &s->contexts[op->context], *old;
  switch (op->call) {
    case EVP_CALL_INIT:
      init(s, op, o);
      break;
    case EVP_CALL_UPDATE:
      if (op->place != EVP_PLACE_OWN) {
        update_placed(s, op, o);
      } else if (op->detail == 0 || is_gcm(*c)) {
        update(s, op, o);
      }
      break;
    case EVP_CALL_CIPHER:
      if (is_gcm(*c)) update(s, op, o);
      break;
    case EVP_CALL_FINAL:
      final(s, op, o);
      break;
    case EVP_CALL_CONTROL:
      control(s, op, o);
      break;
    case EVP_CALL_GET:
      if (EVP_CIPHER_CTX_get0_cipher(*c) != NULL) get(s, op, o);
      break;
    case EVP_CALL_SET:
      if (EVP_CIPHER_CTX_get0_cipher(*c) != NULL) set(s, op, o);
      break;
    case EVP_CALL_COPY:
      o->code = EVP_CIPHER_CTX_copy(s->contexts[op->other], *c);
      break;
    case EVP_CALL_DUP:
      duplicate(s, op, o);
      break;
    case EVP_CALL_RESET:
      o->code = EVP_CIPHER_CTX_reset(*c);
      break;
    case EVP_CALL_ENVELOPE:
      if (op->cipher == 1 || EVP_CIPHER_CTX_get0_cipher(*c) != NULL) envelope(s, op, o);
      break;
    case EVP_CALL_IV:
      if (is_gcm(*c) && EVP_CIPHER_CTX_get_iv_length(*c) == 12) write_iv(s, op, o);
      break;
    case EVP_CALL_BIO:
      if (is_gcm(*c)) by_bio(s, op, o);
      break;
    case EVP_CALL_RANDOM:
      draw_from(s, op);
      break;
    case EVP_CALL_RENEW:
      old = *c;
      if (op->detail == 0) EVP_CIPHER_CTX_free(old);
      *c = EVP_CIPHER_CTX_new();
      if (op->detail == 1) EVP_CIPHER_CTX_free(old);
      break;
    default:
      if (EVP_CIPHER_CTX_get0_cipher(*c) == NULL) break;
      o->code = EVP_CIPHER_CTX_get_tag_length(*c);
      o->bytes = EVP_CIPHER_CTX_get_iv_length(*c);
      break;
  }
}

static void step_in_child(state* s, const evp_op* op, evp_outcome* o) {
  int ends[2];
  if (pipe(ends) != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    step(s, op, o);
    o->error = (uint32_t)ERR_peek_error();
    _exit(write(ends[1], o, sizeof *o) != (ssize_t)sizeof *o);
  }
  close(ends[1]);
  if (read(ends[0], o, sizeof *o) != (ssize_t)sizeof *o) o->code = -100;
  close(ends[0]);
  waitpid(child, NULL, 0);
}

void EVP_SCRIPT_RUN(const evp_op* ops, int count, evp_outcome* outcomes) {
  state s;
  memset(&s, 0, sizeof s);
  for (int i = 0; i < EVP_SCRIPT_CONTEXTS; ++i) s.contexts[i] = EVP_CIPHER_CTX_new();
  for (int i = 0; i < count; ++i) {
    outcomes[i] = (evp_outcome){0, 0, 0, -1, 0};
    ERR_clear_error();
    if (ops[i].in_child) {
      step_in_child(&s, &ops[i], &outcomes[i]);
    } else {
      step(&s, &ops[i], &outcomes[i]);
      outcomes[i].error = (uint32_t)ERR_peek_error();
    }
  }
  RAND_seed("", 0);
  for (int i = 0; i < EVP_SCRIPT_CONTEXTS; ++i) EVP_CIPHER_CTX_free(s.contexts[i]);
}
