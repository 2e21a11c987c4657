// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Do all engines agree with Project Wycheproof's AES-GCM vectors, adversarial ones included? The
// vectors are not part of the tree: the test is skipped where they are absent.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>
#include <vector>

#include "seal/engines_for_tests.h"
#include "seal/hex_for_tests.h"

namespace sealane {
namespace {

// The size that is ours: AES-256, 96-bit IV, 128-bit tag.
bool is_ours(const nlohmann::json& group) {
  return group["keySize"] == 256 && group["ivSize"] == 96 && group["tagSize"] == 128;
}

void check(const Engine& engine, const nlohmann::json& vector) {
  const auto hex = [&](const char* name) { return from_hex(vector[name].get<std::string>()); };
  const auto aead = engine.make(*Key::from_bytes(hex("key")));
  const auto iv = array_from_hex<kIvBytes>(vector["iv"].get<std::string>());
  const auto tag = array_from_hex<kTagBytes>(vector["tag"].get<std::string>());
  const auto ciphertext = hex("ct");
  const auto plaintext = hex("msg");
  const bool valid = vector["result"] == "valid";
  SCOPED_TRACE(engine.version() + ", test " + vector["tcId"].dump());

  std::vector<uint8_t> opened(ciphertext.size());
  EXPECT_EQ(aead->open(iv, hex("aad"), ciphertext, tag, opened).ok(), valid);
  if (!valid) return;
  EXPECT_EQ(opened, plaintext);
  std::vector<uint8_t> sealed(plaintext.size());
  Tag made;
  aead->seal(iv, hex("aad"), plaintext, sealed, made);
  EXPECT_EQ(sealed, ciphertext);
  EXPECT_EQ(made, tag);
}

TEST(Wycheproof, AllVectorsOfOurSize) {
  std::ifstream file(SEALANE_SHARED_DATA "/wycheproof/aes_gcm_test.json");
  if (!file) GTEST_SKIP() << "the Wycheproof vectors are not here";
  const auto document = nlohmann::json::parse(file);
  int checked = 0;
  for (const auto& group : document["testGroups"]) {
    if (!is_ours(group)) continue;
    for (const auto& vector : group["tests"]) {
      for (const Engine* engine : engines_under_test()) check(*engine, vector);
      ++checked;
    }
  }
  EXPECT_GE(checked, 60) << "the file has fewer vectors than it should";
}

}  // namespace
}  // namespace sealane
