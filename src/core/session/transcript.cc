// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/session/transcript.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace sealane {

void Transcript::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Transcript::Transcript() : context_(EVP_MD_CTX_new()) {
  const bool ready = context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
  SEALANE_CHECK(ready, "SHA-256 is missing");
}

void Transcript::add(Bytes bytes) {
  const int done = EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  SEALANE_CHECK(done == 1, "SHA-256 failed");
}

Transcript::Digest Transcript::digest() const {
  const std::unique_ptr<evp_md_ctx_st, Free> copy(EVP_MD_CTX_new());
  Digest digest;
  unsigned bytes = 0;
  const bool done = copy && EVP_MD_CTX_copy_ex(copy.get(), context_.get()) == 1 &&
                    EVP_DigestFinal_ex(copy.get(), digest.data(), &bytes) == 1;
  SEALANE_CHECK(done && bytes == digest.size(), "SHA-256 failed");
  return digest;
}

}  // namespace sealane
