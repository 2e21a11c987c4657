// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "evp.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "live/serve/options.h"
#include "live/serve/pace.h"
#include "live/serve/stand_in.h"
#include "loader.h"
#include "shadow.h"

// libcrypto's types are opaque here: its headers would bring its inline functions and macros.
struct evp_cipher_ctx_st;
struct evp_cipher_st;
struct engine_st;
using Context = evp_cipher_ctx_st;
using Cipher = evp_cipher_st;
using Byte = unsigned char;
struct Parameter {  // OSSL_PARAM, an array of which ends with one without a key
  const char* key;
  unsigned type;
  void* data;
  size_t data_bytes;
  size_t returned_bytes;
};

namespace sealane::preload {
namespace {

constexpr int kNidAes256Gcm = 901;
constexpr int kSetIvLength = 0x9;  // EVP_CTRL_AEAD_SET_IVLEN
constexpr int kGetTag = 0x10;      // EVP_CTRL_AEAD_GET_TAG
constexpr int kSetTag = 0x11;      // EVP_CTRL_AEAD_SET_TAG

using InitEx = int(Context*, const Cipher*, engine_st*, const Byte*, const Byte*);
using InitEx2 = int(Context*, const Cipher*, const Byte*, const Byte*, const Parameter*);
using Init = int(Context*, const Cipher*, const Byte*, const Byte*);
using CipherInitEx = int(Context*, const Cipher*, engine_st*, const Byte*, const Byte*, int);
using CipherInitEx2 = int(Context*, const Cipher*, const Byte*, const Byte*, int, const Parameter*);
using CipherInit = int(Context*, const Cipher*, const Byte*, const Byte*, int);
using Update = int(Context*, Byte*, int*, const Byte*, int);
using Final = int(Context*, Byte*, int*);

// The real libcrypto. Opened by us: the driver may have loaded it out of everybody's sight.
struct Libcrypto {
  InitEx *encrypt_init_ex, *decrypt_init_ex;
  InitEx2 *encrypt_init_ex2, *decrypt_init_ex2;
  Init *encrypt_init, *decrypt_init;
  CipherInitEx* cipher_init_ex;
  CipherInitEx2* cipher_init_ex2;
  CipherInit* cipher_init;
  Update *encrypt_update, *decrypt_update, *cipher_update;
  Final *encrypt_final_ex, *decrypt_final_ex, *cipher_final_ex;
  Final *encrypt_final, *decrypt_final, *cipher_final;
  int (*ctrl)(Context*, int, int, void*);
  int (*get_params)(Context*, Parameter*);
  int (*set_params)(Context*, const Parameter*);
  void (*free)(Context*);
  int (*reset)(Context*);
  int (*copy)(Context*, const Context*);
  const Cipher* (*cipher_of)(const Context*);
  int (*nid_of)(const Cipher*);
  int (*encrypting)(const Context*);
  bool complete = true;

  Libcrypto() {
    void* library = real_dlopen("libcrypto.so.3", RTLD_LAZY | RTLD_LOCAL);
    const auto find = [&](auto*& slot, const char* name) {
      slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(
          library != nullptr ? real_dlsym(library, name) : nullptr);
      complete = complete && slot != nullptr;
    };
    find(encrypt_init_ex, "EVP_EncryptInit_ex");
    find(decrypt_init_ex, "EVP_DecryptInit_ex");
    find(encrypt_init_ex2, "EVP_EncryptInit_ex2");
    find(decrypt_init_ex2, "EVP_DecryptInit_ex2");
    find(encrypt_init, "EVP_EncryptInit");
    find(decrypt_init, "EVP_DecryptInit");
    find(cipher_init_ex, "EVP_CipherInit_ex");
    find(cipher_init_ex2, "EVP_CipherInit_ex2");
    find(cipher_init, "EVP_CipherInit");
    find(encrypt_update, "EVP_EncryptUpdate");
    find(decrypt_update, "EVP_DecryptUpdate");
    find(cipher_update, "EVP_CipherUpdate");
    find(encrypt_final_ex, "EVP_EncryptFinal_ex");
    find(decrypt_final_ex, "EVP_DecryptFinal_ex");
    find(cipher_final_ex, "EVP_CipherFinal_ex");
    find(encrypt_final, "EVP_EncryptFinal");
    find(decrypt_final, "EVP_DecryptFinal");
    find(cipher_final, "EVP_CipherFinal");
    find(ctrl, "EVP_CIPHER_CTX_ctrl");
    find(get_params, "EVP_CIPHER_CTX_get_params");
    find(set_params, "EVP_CIPHER_CTX_set_params");
    find(free, "EVP_CIPHER_CTX_free");
    find(reset, "EVP_CIPHER_CTX_reset");
    find(copy, "EVP_CIPHER_CTX_copy");
    find(cipher_of, "EVP_CIPHER_CTX_get0_cipher");
    find(nid_of, "EVP_CIPHER_get_nid");
    find(encrypting, "EVP_CIPHER_CTX_is_encrypting");
  }
};

const Libcrypto& libcrypto() {
  static const Libcrypto& found = *new Libcrypto;
  return found;
}

std::atomic<serve::Crew*> crew{nullptr};  // null: nothing to watch or answer
std::atomic<bool> distrusted{false};      // an answer was wrong: never again
std::atomic<uint64_t> verified{0};

Shadows& shadows() {
  static Shadows& all = *new Shadows;
  return all;
}

// In the child of a fork there are none: a lock of the table may be held by a thread that is gone.
std::shared_ptr<Shadow> find_shadow(const Context* context) {
  return crew.load(std::memory_order_acquire) != nullptr ? shadows().find(context) : nullptr;
}

void drop_shadow(const Context* context) {
  if (crew.load(std::memory_order_acquire) != nullptr) shadows().drop(context);
}

// --- key and IV

// After the real call has set something: a cipher, a key, an IV, in any combination.
void after_init(Context* context, const Byte* key, const Byte* iv, const void* caller) {
  if (crew.load(std::memory_order_acquire) == nullptr) return;
  auto shadow = find_shadow(context);
  if (key != nullptr) {
    const Cipher* cipher = libcrypto().cipher_of(context);
    const bool gcm = cipher != nullptr && libcrypto().nid_of(cipher) == kNidAes256Gcm;
    if (!gcm || !in_driver(caller)) {
      drop_shadow(context);
      return;
    }
    if (!shadow) shadow = shadows().make(context);
    const auto known = serve::know_key(std::span<const uint8_t, Key::kBytes>(key, Key::kBytes));
    const Direction direction =
        libcrypto().encrypting(context) != 0 ? Direction::to_device : Direction::to_host;
    shadow->answers = serve::options().engine && known.schedule != nullptr && !distrusted.load();
    shadow->message.set_key(known.schedule, known.number, direction);
  }
  if (!shadow || iv == nullptr) return;
  Iv bytes;
  std::copy_n(iv, bytes.size(), bytes.begin());
  shadow->message.begin(bytes);
  shadow->begun = shadow->finished = shadow->has_tag = false;
  if (distrusted.load(std::memory_order_relaxed)) shadow->answers = false;
  shadow->verifying =
      shadow->answers && verified.load(std::memory_order_relaxed) < serve::options().verify;
}

// --- bytes

void distrust(Shadow& shadow) {
  if (!distrusted.exchange(true)) {
    std::fprintf(stderr,
                 "sealane: an answer differed from libcrypto's: libcrypto seals from now on\n");
  }
  shadow.answers = false;
}

// Both compute in private memory; libcrypto is believed. Only one answer is ever seen: a second
// ciphertext under the same IV would give both away. False: libcrypto refused.
bool update_verified(Shadow& shadow, Update* real, Context* context, Byte* out, int* out_bytes,
                     const Byte* in, int bytes) {
  const auto count = static_cast<size_t>(bytes);
  shadow.input.assign(in, in + count);
  shadow.expected.resize(count + kGcmBlockBytes);
  shadow.ours.resize(count);
  if (real(context, shadow.expected.data(), out_bytes, shadow.input.data(), bytes) != 1)
    return false;
  shadow.message.update(shadow.input.data(), shadow.ours.data(), count, nullptr);
  std::memcpy(out, shadow.expected.data(), count);
  if (!constant_time_equal(Bytes(shadow.expected).first(count), shadow.ours)) distrust(shadow);
  wipe(shadow.input);
  wipe(shadow.expected);
  wipe(shadow.ours);
  return true;
}

int update(Update* real, Context* context, Byte* out, int* out_bytes, const Byte* in, int bytes) {
  if (bytes > 0) {
    in = serve::real_source(in, static_cast<uint64_t>(bytes));
    out = serve::real_destination(out, static_cast<uint64_t>(bytes));
  }
  const auto shadow = find_shadow(context);
  if (!shadow || in == nullptr || bytes < 0) return real(context, out, out_bytes, in, bytes);
  const auto count = static_cast<size_t>(bytes);
  if (out == nullptr) {  // additional data
    if (!shadow->message.add_additional({in, count})) shadow->answers = false;
    return real(context, out, out_bytes, in, bytes);
  }
  shadow->begun = true;
  if (!shadow->answers) {
    shadow->message.pass(in, out, count);
    return real(context, out, out_bytes, in, bytes);
  }
  serve::pace().tell_answered(count);
  if (shadow->verifying) {
    return update_verified(*shadow, real, context, out, out_bytes, in, bytes) ? 1 : 0;
  }
  shadow->message.update(
      in, out, count, serve::options().parallel ? crew.load(std::memory_order_acquire) : nullptr);
  *out_bytes = bytes;
  return 1;
}

// --- tag

int final(Final* real, Context* context, Byte* out, int* out_bytes) {
  const auto shadow = find_shadow(context);
  if (!shadow || !shadow->begun) return real(context, out, out_bytes);
  const Tag mine = shadow->message.tag(shadow->answers);
  shadow->finished = true;
  if (!shadow->answers) return real(context, out, out_bytes);
  const bool opening = shadow->message.direction() == Direction::to_host;
  int result = 1;
  if (shadow->verifying) {
    verified.fetch_add(1);
    result = real(context, out, out_bytes);
    if (opening) return result;
    Tag theirs{};
    if (libcrypto().ctrl(context, kGetTag, static_cast<int>(theirs.size()), theirs.data()) == 1 &&
        theirs != mine) {
      distrust(*shadow);
    }
    shadow->tag = theirs;
    return result;
  }
  if (opening) {
    result = shadow->has_tag && constant_time_equal(shadow->tag, mine) ? 1 : 0;
    if (result == 0) shadow->message.refuse();
  } else {
    shadow->tag = mine;
  }
  *out_bytes = 0;
  return result;
}

int control(Context* context, int type, int size, void* data) {
  const auto shadow = find_shadow(context);
  if (!shadow) return libcrypto().ctrl(context, type, size, data);
  const bool ours = shadow->answers && shadow->begun;
  if (type == kGetTag && ours && shadow->finished && data != nullptr && size >= 1 && size <= 16) {
    std::memcpy(data, shadow->tag.data(), static_cast<size_t>(size));
    return 1;
  }
  if (type == kSetTag && data != nullptr && size == static_cast<int>(kTagBytes)) {
    std::memcpy(shadow->tag.data(), data, kTagBytes);
    shadow->has_tag = true;
    return libcrypto().ctrl(context, type, size, data);
  }
  const bool known =
      type == kGetTag || (type == kSetIvLength && size == static_cast<int>(kIvBytes));
  if (!known && !shadow->begun) shadow->answers = false;  // libcrypto knows what that means
  return libcrypto().ctrl(context, type, size, data);
}

// --- the same by OpenSSL 3's parameters

bool is_tag(const Parameter& one) {
  return std::strcmp(one.key, "tag") == 0 && one.data != nullptr;
}

// After the real call has taken them.
void after_parameters(Context* context, const Parameter* list) {
  const auto shadow = list != nullptr ? find_shadow(context) : nullptr;
  for (; shadow && list->key != nullptr; ++list) {
    if (is_tag(*list) && list->data_bytes == kTagBytes) {
      std::memcpy(shadow->tag.data(), list->data, kTagBytes);
      shadow->has_tag = true;
    } else if (!shadow->begun) {
      shadow->answers = false;  // libcrypto knows what that means
    }
  }
}

int get_parameters(Context* context, Parameter* list) {
  const auto shadow = find_shadow(context);
  const bool ours = shadow && shadow->answers && shadow->begun && shadow->finished;
  bool only_tags = list != nullptr;
  for (Parameter* one = list; only_tags && one->key != nullptr; ++one) {
    only_tags = is_tag(*one) && one->data_bytes >= 1 && one->data_bytes <= kTagBytes;
  }
  if (!ours || !only_tags) return libcrypto().get_params(context, list);
  for (Parameter* one = list; one->key != nullptr; ++one) {
    std::memcpy(one->data, shadow->tag.data(), one->data_bytes);
    one->returned_bytes = one->data_bytes;
  }
  return 1;
}

}  // namespace

void start_answering(serve::Crew& workers) {
  if (libcrypto().complete) crew.store(&workers);
}

void stop_answering() { crew.store(nullptr); }

}  // namespace sealane::preload

using namespace sealane::preload;

#define SEALANE_EVP extern "C" __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

#define INIT_EX(symbol, member)                                                     \
  SEALANE_EVP int symbol(Context* context, const Cipher* cipher, engine_st* engine, \
                         const Byte* key, const Byte* iv) {                         \
    const int result = libcrypto().member(context, cipher, engine, key, iv);        \
    if (result == 1) after_init(context, key, iv, CALLER);                          \
    return result;                                                                  \
  }
INIT_EX(EVP_EncryptInit_ex, encrypt_init_ex)
INIT_EX(EVP_DecryptInit_ex, decrypt_init_ex)

#define INIT_EX2(symbol, member)                                                                  \
  SEALANE_EVP int symbol(Context* context, const Cipher* cipher, const Byte* key, const Byte* iv, \
                         const Parameter* parameters) {                                           \
    const int result = libcrypto().member(context, cipher, key, iv, parameters);                  \
    if (result == 1) after_init(context, key, iv, CALLER);                                        \
    if (result == 1) after_parameters(context, parameters);                                       \
    return result;                                                                                \
  }
INIT_EX2(EVP_EncryptInit_ex2, encrypt_init_ex2)
INIT_EX2(EVP_DecryptInit_ex2, decrypt_init_ex2)

#define INIT(symbol, member)                                                      \
  SEALANE_EVP int symbol(Context* context, const Cipher* cipher, const Byte* key, \
                         const Byte* iv) {                                        \
    const int result = libcrypto().member(context, cipher, key, iv);              \
    if (result == 1) after_init(context, key, iv, CALLER);                        \
    return result;                                                                \
  }
INIT(EVP_EncryptInit, encrypt_init)
INIT(EVP_DecryptInit, decrypt_init)

SEALANE_EVP int EVP_CipherInit_ex(Context* context, const Cipher* cipher, engine_st* engine,
                                  const Byte* key, const Byte* iv, int encrypt) {
  const int result = libcrypto().cipher_init_ex(context, cipher, engine, key, iv, encrypt);
  if (result == 1) after_init(context, key, iv, CALLER);
  return result;
}
SEALANE_EVP int EVP_CipherInit_ex2(Context* context, const Cipher* cipher, const Byte* key,
                                   const Byte* iv, int encrypt, const Parameter* parameters) {
  const int result = libcrypto().cipher_init_ex2(context, cipher, key, iv, encrypt, parameters);
  if (result == 1) after_init(context, key, iv, CALLER);
  if (result == 1) after_parameters(context, parameters);
  return result;
}
SEALANE_EVP int EVP_CipherInit(Context* context, const Cipher* cipher, const Byte* key,
                               const Byte* iv, int encrypt) {
  const int result = libcrypto().cipher_init(context, cipher, key, iv, encrypt);
  if (result == 1) after_init(context, key, iv, CALLER);
  return result;
}

#define UPDATE(symbol, member)                                                                     \
  SEALANE_EVP int symbol(Context* context, Byte* out, int* out_bytes, const Byte* in, int bytes) { \
    return update(libcrypto().member, context, out, out_bytes, in, bytes);                         \
  }
UPDATE(EVP_EncryptUpdate, encrypt_update)
UPDATE(EVP_DecryptUpdate, decrypt_update)
UPDATE(EVP_CipherUpdate, cipher_update)

#define FINAL(symbol, member)                                           \
  SEALANE_EVP int symbol(Context* context, Byte* out, int* out_bytes) { \
    return final(libcrypto().member, context, out, out_bytes);          \
  }
FINAL(EVP_EncryptFinal_ex, encrypt_final_ex)
FINAL(EVP_DecryptFinal_ex, decrypt_final_ex)
FINAL(EVP_CipherFinal_ex, cipher_final_ex)
FINAL(EVP_EncryptFinal, encrypt_final)
FINAL(EVP_DecryptFinal, decrypt_final)
FINAL(EVP_CipherFinal, cipher_final)

SEALANE_EVP int EVP_CIPHER_CTX_ctrl(Context* context, int type, int size, void* data) {
  return control(context, type, size, data);
}
SEALANE_EVP int EVP_CIPHER_CTX_get_params(Context* context, Parameter* list) {
  return get_parameters(context, list);
}
SEALANE_EVP int EVP_CIPHER_CTX_set_params(Context* context, const Parameter* list) {
  const int result = libcrypto().set_params(context, list);
  if (result == 1) after_parameters(context, list);
  return result;
}
SEALANE_EVP void EVP_CIPHER_CTX_free(Context* context) {
  drop_shadow(context);
  libcrypto().free(context);
}
SEALANE_EVP int EVP_CIPHER_CTX_reset(Context* context) {
  drop_shadow(context);
  return libcrypto().reset(context);
}
// A copy of a context whose bytes we answered has nothing to go on with.
SEALANE_EVP int EVP_CIPHER_CTX_copy(Context* to, const Context* from) {
  drop_shadow(to);
  const auto shadow = find_shadow(from);
  if (shadow && shadow->answers && shadow->begun && !shadow->finished) return 0;
  return libcrypto().copy(to, from);
}

namespace sealane::preload {

void* hook_for_libcrypto(void* handle, const char* name) {
#define ENTRY(symbol) \
  { #symbol, reinterpret_cast < void*>(&symbol) }
  static const struct {
    const char* name;
    void* function;
  } kHooks[] = {
      ENTRY(EVP_EncryptInit_ex),
      ENTRY(EVP_DecryptInit_ex),
      ENTRY(EVP_EncryptInit_ex2),
      ENTRY(EVP_DecryptInit_ex2),
      ENTRY(EVP_EncryptInit),
      ENTRY(EVP_DecryptInit),
      ENTRY(EVP_CipherInit_ex),
      ENTRY(EVP_CipherInit_ex2),
      ENTRY(EVP_CipherInit),
      ENTRY(EVP_EncryptUpdate),
      ENTRY(EVP_DecryptUpdate),
      ENTRY(EVP_CipherUpdate),
      ENTRY(EVP_EncryptFinal_ex),
      ENTRY(EVP_DecryptFinal_ex),
      ENTRY(EVP_CipherFinal_ex),
      ENTRY(EVP_EncryptFinal),
      ENTRY(EVP_DecryptFinal),
      ENTRY(EVP_CipherFinal),
      ENTRY(EVP_CIPHER_CTX_ctrl),
      ENTRY(EVP_CIPHER_CTX_free),
      ENTRY(EVP_CIPHER_CTX_reset),
      ENTRY(EVP_CIPHER_CTX_copy),
      ENTRY(EVP_CIPHER_CTX_get_params),
      ENTRY(EVP_CIPHER_CTX_set_params),
  };
#undef ENTRY
  for (const auto& hook : kHooks) {
    if (std::strcmp(hook.name, name) != 0) continue;
    // Only if it is the libcrypto we forward to.
    void* real = real_dlsym(handle, name);
    void* library = real_dlopen("libcrypto.so.3", RTLD_LAZY | RTLD_NOLOAD);
    const bool same = library != nullptr && real == real_dlsym(library, name);
    return same ? hook.function : nullptr;
  }
  return nullptr;
}

}  // namespace sealane::preload
