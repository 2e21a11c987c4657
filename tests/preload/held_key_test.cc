// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// libcrypto shows which key it holds: the keystream of a context's message is told from any other,
// in both directions, and where it cannot be told nothing is believed. Neither the context nor the
// queue of errors is changed, and of the key nothing stays in the copy.

#include "held_key.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <vector>

namespace sealane::preload {
namespace {

const std::vector<uint8_t> kKey(32, 1), kOtherKey(32, 2);
const std::vector<uint8_t> kIv(12, 3), kOtherIv(12, 4);
const GcmBlock kZeros{};

int resets = 0;
int counted_reset(Context* context) { return ++resets, EVP_CIPHER_CTX_reset(context); }

Libcrypto real() {
  Libcrypto table;
  table.make = &EVP_CIPHER_CTX_new;
  table.free = &EVP_CIPHER_CTX_free;
  table.copy = &EVP_CIPHER_CTX_copy;
  table.reset = &counted_reset;
  table.cipher_update = &EVP_CipherUpdate;
  table.mark_errors = &ERR_set_mark;
  table.drop_errors = &ERR_pop_to_mark;
  return table;
}

// A context of the driver's, at the first byte of a message.
class Held {
 public:
  Held(const std::vector<uint8_t>& key, const std::vector<uint8_t>& iv, bool sealing) {
    EVP_CipherInit_ex(context_, EVP_aes_256_gcm(), nullptr, key.data(), iv.data(), sealing ? 1 : 0);
  }
  ~Held() { EVP_CIPHER_CTX_free(context_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  EVP_CIPHER_CTX* context() { return context_; }
  GcmBlock first() {
    GcmBlock out{};
    int count = 0;
    EXPECT_EQ(EVP_CipherUpdate(context_, out.data(), &count, kZeros.data(), kGcmBlockBytes), 1);
    return out;
  }

 private:
  EVP_CIPHER_CTX* context_ = EVP_CIPHER_CTX_new();
};

class HeldKeyTest : public testing::Test {
  // The runtime answers nothing with those that take used IVs, and the older ones of them copy no
  // context of GCM.
  void SetUp() override {
    const unsigned long version = OpenSSL_version_num();
    if (version < 0x300000d0 || (version >= 0x30100000 && version < 0x30100050)) {
      GTEST_SKIP() << OpenSSL_version(OPENSSL_VERSION) << " is before 3.0.13 or 3.1.5";
    }
  }
};

TEST_F(HeldKeyTest, ItsKeystreamIsToldFromThatOfAnotherKeyOrIv) {
  const Libcrypto table = real();
  HeldKey held(table);
  for (const bool sealing : {true, false}) {
    Held ours(kKey, kIv, sealing);
    EXPECT_TRUE(held.makes(ours.context(), Held(kKey, kIv, true).first()));
    EXPECT_FALSE(held.makes(ours.context(), Held(kOtherKey, kIv, true).first()));
    EXPECT_FALSE(held.makes(ours.context(), Held(kKey, kOtherIv, true).first()));
  }
}

TEST_F(HeldKeyTest, TheContextGoesOnAsIfNothingHadBeen) {
  const Libcrypto table = real();
  HeldKey held(table);
  const GcmBlock first = Held(kKey, kIv, true).first();
  Held ours(kKey, kIv, true);
  int count = 0;
  ASSERT_EQ(EVP_CipherUpdate(ours.context(), nullptr, &count, kIv.data(), 12), 1);
  EXPECT_TRUE(held.makes(ours.context(), first));
  EXPECT_EQ(ours.first(), first);
}

TEST_F(HeldKeyTest, TheCopyIsEmptiedEachTime) {
  const Libcrypto table = real();
  HeldKey held(table);
  Held ours(kKey, kIv, true);
  const int before = resets;
  EXPECT_TRUE(held.makes(ours.context(), Held(kKey, kIv, true).first()));
  EXPECT_FALSE(held.makes(ours.context(), kZeros));
  EXPECT_EQ(resets, before + 2);
}

TEST_F(HeldKeyTest, WithoutMemoryNothingIsBelieved) {
  Libcrypto table = real();
  table.make = []() -> Context* { return nullptr; };
  HeldKey held(table);
  Held ours(kKey, kIv, true);
  EXPECT_FALSE(held.makes(ours.context(), kZeros));
  table.make = &EVP_CIPHER_CTX_new;
  EXPECT_TRUE(held.makes(ours.context(), Held(kKey, kIv, true).first()));
}

TEST_F(HeldKeyTest, WhatCannotBeCopiedOrSealsNothingIsNotBelievedAndLeavesNoError) {
  ERR_clear_error();
  Held empty(kKey, kIv, true);
  EVP_CIPHER_CTX_reset(empty.context());
  const Libcrypto table = real();
  EXPECT_FALSE(HeldKey(table).makes(empty.context(), kZeros));
  Libcrypto refuses = real();
  refuses.cipher_update = [](Context*, Byte*, int*, const Byte*, int) { return 0; };
  Held ours(kKey, kIv, true);
  EXPECT_FALSE(HeldKey(refuses).makes(ours.context(), kZeros));
  EXPECT_EQ(ERR_peek_error(), 0u);
}

}  // namespace
}  // namespace sealane::preload
