// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A libcrypto is believed to refuse burnt IVs only if it does: OpenSSL's own does, and with any one
// of its refusals taken away it is left alone.

#include "used_iv.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <deque>

namespace sealane::preload {
namespace {

// Each test has a table of its own, each time that it runs: what was found out about one is kept by
// its address.
Libcrypto& real() {
  static std::deque<Libcrypto> all;
  Libcrypto& table = all.emplace_back();
  table.make = &EVP_CIPHER_CTX_new;
  table.free = &EVP_CIPHER_CTX_free;
  table.cipher_init_ex2 = reinterpret_cast<CipherInitEx2*>(&EVP_CipherInit_ex2);
  table.cipher_update = &EVP_CipherUpdate;
  table.cipher_final_ex = &EVP_CipherFinal_ex;
  table.cipher = &EVP_Cipher;
  table.ctrl = &EVP_CIPHER_CTX_ctrl;
  table.get_params = reinterpret_cast<int (*)(Context*, Parameter*)>(&EVP_CIPHER_CTX_get_params);
  table.provider_of =
      reinterpret_cast<const ossl_provider_st* (*)(const Cipher*)>(&EVP_CIPHER_get0_provider);
  table.mark_errors = &ERR_set_mark;
  table.drop_errors = &ERR_pop_to_mark;
  return table;
}

class UsedIv : public testing::Test {
 protected:
  EVP_CIPHER* cipher_ = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  ~UsedIv() override { EVP_CIPHER_free(cipher_); }
};

// With an OpenSSL that is believed if nothing is taken away.
class UsedIvOfGoodOne : public UsedIv {
  void SetUp() override {
    const unsigned long version = OpenSSL_version_num();
    if (version < 0x300000d0 || (version >= 0x30100000 && version < 0x30100050)) {
      GTEST_SKIP() << OpenSSL_version(OPENSSL_VERSION)
                   << " takes used IVs, as all before 3.0.13 and 3.1.5";
    }
  }
};

TEST_F(UsedIvOfGoodOne, OpenSslRefusesABurntOneAndLeavesNoErrorBehind) {
  const Libcrypto& table = real();
  ERR_clear_error();
  EXPECT_TRUE(refuses_burnt_ivs(table, cipher_));
  EXPECT_TRUE(refuses_burnt_ivs(table, cipher_));  // as it was found
  EXPECT_EQ(ERR_peek_error(), 0u);
}

TEST_F(UsedIvOfGoodOne, AnErrorFromBeforeStays) {
  const Libcrypto& table = real();
  ERR_clear_error();
  ERR_raise(ERR_LIB_USER, 7);
  const auto before = ERR_peek_last_error();
  EXPECT_TRUE(refuses_burnt_ivs(table, cipher_));
  EXPECT_EQ(ERR_peek_last_error(), before);
  ERR_clear_error();
}

TEST_F(UsedIv, WhereTheLengthOfAnIvMeansNothingNothingIsBelieved) {
  Libcrypto& table = real();
  table.ctrl = [](Context*, int, int, void*) { return 1; };
  EXPECT_FALSE(refuses_burnt_ivs(table, cipher_));
}

TEST_F(UsedIv, WhereTheLengthCannotBeSetNothingIsBelieved) {
  Libcrypto& table = real();
  table.ctrl = [](Context*, int, int, void*) { return 0; };
  EXPECT_FALSE(refuses_burnt_ivs(table, cipher_));
}

TEST_F(UsedIv, WhereBytesAreTakenAfterwardsNothingIsBelieved) {
  Libcrypto& table = real();
  table.cipher_update = [](Context*, Byte*, int*, const Byte*, int) { return 1; };
  EXPECT_FALSE(refuses_burnt_ivs(table, cipher_));
}

TEST_F(UsedIv, WhereAMessageCanBeEndedAfterwardsNothingIsBelieved) {
  Libcrypto& table = real();
  table.cipher_final_ex = [](Context*, Byte*, int*) { return 1; };
  EXPECT_FALSE(refuses_burnt_ivs(table, cipher_));
}

TEST_F(UsedIv, WhereItIsNotToldWhetherBytesWereTakenNothingIsBelieved) {
  Libcrypto& table = real();
  table.cipher = [](Context*, Byte*, const Byte*, unsigned) { return 0; };
  EXPECT_FALSE(refuses_burnt_ivs(table, cipher_));
}

TEST_F(UsedIv, WhereItIsNotToldWhetherBytesWouldBeTakenNothingIsBelieved) {
  for (const int told : {0, -1}) {
    Libcrypto& table = real();
    static int answer;
    answer = told;
    table.cipher = [](Context* context, Byte* out, const Byte* in, unsigned bytes) {
      return out != nullptr ? answer : EVP_Cipher(context, out, in, bytes);
    };
    EXPECT_FALSE(refuses_burnt_ivs(table, cipher_)) << told;
  }
}

TEST_F(UsedIv, WhereTheIvCannotBeReadNothingIsBelieved) {
  Libcrypto& table = real();
  table.get_params = [](Context*, Parameter*) { return 0; };
  EXPECT_FALSE(refuses_burnt_ivs(table, cipher_));
}

TEST_F(UsedIvOfGoodOne, WithoutMemoryItIsTriedAgainLater) {
  Libcrypto& table = real();
  table.make = []() -> Context* { return nullptr; };
  EXPECT_FALSE(refuses_burnt_ivs(table, cipher_));
  table.make = &EVP_CIPHER_CTX_new;
  EXPECT_TRUE(refuses_burnt_ivs(table, cipher_));
}

}  // namespace
}  // namespace sealane::preload
