// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// libcrypto's functions that we stand in front of or ask, as a table of one libcrypto. A process
// may have several, and contexts of one are garbage to another: whose calls go to which table is
// known in binding.h. We bring none along.
#pragma once

#include <cstddef>
#include <type_traits>

// libcrypto's types are opaque here: its headers would bring its inline functions and macros.
struct evp_cipher_ctx_st;
struct evp_cipher_st;
struct engine_st;
struct ossl_provider_st;

namespace sealane::preload {

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

using InitEx = int(Context*, const Cipher*, engine_st*, const Byte*, const Byte*);
using InitEx2 = int(Context*, const Cipher*, const Byte*, const Byte*, const Parameter*);
using Init = int(Context*, const Cipher*, const Byte*, const Byte*);
using CipherInitEx = int(Context*, const Cipher*, engine_st*, const Byte*, const Byte*, int);
using CipherInitEx2 = int(Context*, const Cipher*, const Byte*, const Byte*, int, const Parameter*);
using CipherInit = int(Context*, const Cipher*, const Byte*, const Byte*, int);
using Update = int(Context*, Byte*, int*, const Byte*, int);
using Final = int(Context*, Byte*, int*);
using SealInit = int(Context*, const Cipher*, Byte**, int*, Byte*, void**, int);
using OpenInit = int(Context*, const Cipher*, const Byte*, int, const Byte*, void*);
using SkeyInit = int(Context*, const Cipher*, void*, const Byte*, size_t, int, const Parameter*);

// What we stand in front of, with the version it has in OpenSSL 3: member, type, symbol, version.
#define SEALANE_HOOKED_LIBCRYPTO(X)                                                          \
  X(encrypt_init_ex, InitEx, EVP_EncryptInit_ex, "OPENSSL_3.0.0")                            \
  X(decrypt_init_ex, InitEx, EVP_DecryptInit_ex, "OPENSSL_3.0.0")                            \
  X(encrypt_init_ex2, InitEx2, EVP_EncryptInit_ex2, "OPENSSL_3.0.0")                         \
  X(decrypt_init_ex2, InitEx2, EVP_DecryptInit_ex2, "OPENSSL_3.0.0")                         \
  X(encrypt_init, Init, EVP_EncryptInit, "OPENSSL_3.0.0")                                    \
  X(decrypt_init, Init, EVP_DecryptInit, "OPENSSL_3.0.0")                                    \
  X(cipher_init_ex, CipherInitEx, EVP_CipherInit_ex, "OPENSSL_3.0.0")                        \
  X(cipher_init_ex2, CipherInitEx2, EVP_CipherInit_ex2, "OPENSSL_3.0.0")                     \
  X(cipher_init, CipherInit, EVP_CipherInit, "OPENSSL_3.0.0")                                \
  X(seal_init, SealInit, EVP_SealInit, "OPENSSL_3.0.0")                                      \
  X(open_init, OpenInit, EVP_OpenInit, "OPENSSL_3.0.0")                                      \
  X(encrypt_update, Update, EVP_EncryptUpdate, "OPENSSL_3.0.0")                              \
  X(decrypt_update, Update, EVP_DecryptUpdate, "OPENSSL_3.0.0")                              \
  X(cipher_update, Update, EVP_CipherUpdate, "OPENSSL_3.0.0")                                \
  X(encrypt_final_ex, Final, EVP_EncryptFinal_ex, "OPENSSL_3.0.0")                           \
  X(decrypt_final_ex, Final, EVP_DecryptFinal_ex, "OPENSSL_3.0.0")                           \
  X(cipher_final_ex, Final, EVP_CipherFinal_ex, "OPENSSL_3.0.0")                             \
  X(encrypt_final, Final, EVP_EncryptFinal, "OPENSSL_3.0.0")                                 \
  X(decrypt_final, Final, EVP_DecryptFinal, "OPENSSL_3.0.0")                                 \
  X(cipher_final, Final, EVP_CipherFinal, "OPENSSL_3.0.0")                                   \
  X(seal_final, Final, EVP_SealFinal, "OPENSSL_3.0.0")                                       \
  X(open_final, Final, EVP_OpenFinal, "OPENSSL_3.0.0")                                       \
  X(cipher, int(Context*, Byte*, const Byte*, unsigned), EVP_Cipher, "OPENSSL_3.0.0")        \
  X(ctrl, int(Context*, int, int, void*), EVP_CIPHER_CTX_ctrl, "OPENSSL_3.0.0")              \
  X(get_params, int(Context*, Parameter*), EVP_CIPHER_CTX_get_params, "OPENSSL_3.0.0")       \
  X(set_params, int(Context*, const Parameter*), EVP_CIPHER_CTX_set_params, "OPENSSL_3.0.0") \
  X(tag_length, int(const Context*), EVP_CIPHER_CTX_get_tag_length, "OPENSSL_3.0.0")         \
  X(free, void(Context*), EVP_CIPHER_CTX_free, "OPENSSL_3.0.0")                              \
  X(reset, int(Context*), EVP_CIPHER_CTX_reset, "OPENSSL_3.0.0")                             \
  X(copy, int(Context*, const Context*), EVP_CIPHER_CTX_copy, "OPENSSL_3.0.0")

// The same, of newer ones: a libcrypto may be without.
#define SEALANE_HOOKED_NEWER_LIBCRYPTO(X)                               \
  X(dup, Context*(const Context*), EVP_CIPHER_CTX_dup, "OPENSSL_3.1.0") \
  X(skey_init, SkeyInit, EVP_CipherInit_SKEY, "OPENSSL_3.5.0")

// What we only ask.
#define SEALANE_ASKED_LIBCRYPTO(X)                                                                 \
  X(cipher_of, const Cipher*(const Context*), EVP_CIPHER_CTX_get0_cipher, "OPENSSL_3.0.0")         \
  X(nid_of, int(const Cipher*), EVP_CIPHER_get_nid, "OPENSSL_3.0.0")                               \
  X(provider_of, const ossl_provider_st*(const Cipher*), EVP_CIPHER_get0_provider,                 \
    "OPENSSL_3.0.0")                                                                               \
  X(provider_name, const char*(const ossl_provider_st*), OSSL_PROVIDER_get0_name, "OPENSSL_3.0.0") \
  X(encrypting, int(const Context*), EVP_CIPHER_CTX_is_encrypting, "OPENSSL_3.0.0")                \
  X(iv_length, int(const Context*), EVP_CIPHER_CTX_get_iv_length, "OPENSSL_3.0.0")                 \
  X(make, Context*(), EVP_CIPHER_CTX_new, "OPENSSL_3.0.0")                                         \
  X(mark_errors, int(), ERR_set_mark, "OPENSSL_3.0.0")                                             \
  X(drop_errors, int(), ERR_pop_to_mark, "OPENSSL_3.0.0")

struct Libcrypto {
#define SEALANE_MEMBER(member, type, symbol, version) std::add_pointer_t<type> member = nullptr;
  SEALANE_HOOKED_LIBCRYPTO(SEALANE_MEMBER)
  SEALANE_HOOKED_NEWER_LIBCRYPTO(SEALANE_MEMBER)
  SEALANE_ASKED_LIBCRYPTO(SEALANE_MEMBER)
#undef SEALANE_MEMBER
};

// What a scope has: a library's handle, or RTLD_DEFAULT. False: not everything but the newer ones.
// Asks the dynamic linker, which has a lock of its own and runs constructors under it.
bool find_libcrypto(Libcrypto& table, void* scope);

// Those that the driver reaches: for good, and equal ones once. What is beyond them is not ours.
constexpr size_t kMaxLibcryptos = 4;
extern Libcrypto libcryptos[kMaxLibcryptos];
// Where it is in that list; kMaxLibcryptos: there is no room. Callers take turns.
size_t keep_libcrypto(const Libcrypto& table);

}  // namespace sealane::preload
