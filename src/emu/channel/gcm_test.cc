// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is the device's own AES-256-GCM the real thing? Both implementations against libcrypto.

#include "emu/channel/gcm.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <vector>

#include "base/random.h"

namespace sealane::emu {
namespace {

using Maker = std::unique_ptr<Gcm> (*)(const GcmKey&);

class GcmTest : public testing::TestWithParam<Maker> {
 protected:
  void SetUp() override {
    random_.fill(key_);
    random_.fill(iv_);
    gcm_ = GetParam()(key_);
    if (!gcm_) GTEST_SKIP() << "not on this CPU or build";
  }

  std::vector<uint8_t> bytes(size_t size) {
    std::vector<uint8_t> out(size);
    random_.fill(out);
    return out;
  }

  SeededRandom random_{42};
  GcmKey key_;
  GcmIv iv_;
  std::unique_ptr<Gcm> gcm_;
};
INSTANTIATE_TEST_SUITE_P(Both, GcmTest, testing::Values(make_ipsec_mb_gcm, make_portable_gcm));

std::vector<uint8_t> libcrypto_seal(const GcmKey& key, const GcmIv& iv, Bytes additional,
                                    Bytes plaintext, GcmTag& tag) {
  std::vector<uint8_t> out(plaintext.size() + 16);
  int length = 0;
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nullptr, key.data(), iv.data());
  if (!additional.empty()) {
    EVP_EncryptUpdate(context, nullptr, &length, additional.data(),
                      static_cast<int>(additional.size()));
  }
  EVP_EncryptUpdate(context, out.data(), &length, plaintext.data(),
                    static_cast<int>(plaintext.size()));
  EVP_EncryptFinal_ex(context, out.data() + length, &length);
  EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag.data());
  EVP_CIPHER_CTX_free(context);
  out.resize(plaintext.size());
  return out;
}

TEST_P(GcmTest, AgreesWithLibcrypto) {
  for (const size_t size : {1u, 15u, 16u, 17u, 255u, 4096u, 10001u}) {
    const auto plaintext = bytes(size);
    const auto additional = bytes(size % 40);
    GcmTag expected_tag;
    const auto expected = libcrypto_seal(key_, iv_, additional, plaintext, expected_tag);
    std::vector<uint8_t> sealed(size);
    GcmTag tag;
    gcm_->seal(iv_, additional, plaintext, sealed.data(), tag);
    EXPECT_EQ(sealed, expected) << size;
    EXPECT_EQ(tag, expected_tag) << size;
    std::vector<uint8_t> opened(size);
    EXPECT_TRUE(gcm_->open(iv_, additional, sealed, tag, opened.data()));
    EXPECT_EQ(opened, plaintext);
  }
}

TEST_P(GcmTest, RefusesAndWipes) {
  const auto plaintext = bytes(1000);
  std::vector<uint8_t> sealed(1000);
  GcmTag tag;
  gcm_->seal(iv_, {}, plaintext, sealed.data(), tag);
  sealed[999] ^= 1;
  std::vector<uint8_t> opened(1000, 7);
  EXPECT_FALSE(gcm_->open(iv_, {}, sealed, tag, opened.data()));
  EXPECT_EQ(opened, std::vector<uint8_t>(1000, 0));
}

}  // namespace
}  // namespace sealane::emu
