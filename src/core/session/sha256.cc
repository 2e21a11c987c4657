// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/session/sha256.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace sealane {

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  const bool ready = context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
  SEALANE_CHECK(ready, "SHA-256 is missing");
}

void Sha256::add(Bytes bytes) {
  const int done = EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  SEALANE_CHECK(done == 1, "SHA-256 failed");
}

Sha256::Digest Sha256::digest() const {
  const std::unique_ptr<evp_md_ctx_st, Free> copy(EVP_MD_CTX_new());
  Digest digest;
  unsigned bytes = 0;
  const bool done = copy && EVP_MD_CTX_copy_ex(copy.get(), context_.get()) == 1 &&
                    EVP_DigestFinal_ex(copy.get(), digest.data(), &bytes) == 1;
  SEALANE_CHECK(done && bytes == digest.size(), "SHA-256 failed");
  return digest;
}

std::string Sha256::text() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const uint8_t byte : digest()) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace sealane
