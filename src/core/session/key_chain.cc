// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/session/key_chain.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"
#include "base/text.h"

namespace sealane {

void hkdf_expand(Bytes secret, std::string_view label, MutableBytes out) {
  const std::unique_ptr<EVP_KDF, void (*)(EVP_KDF*)> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr),
                                                         EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, void (*)(EVP_KDF_CTX*)> context(EVP_KDF_CTX_new(kdf.get()),
                                                                     EVP_KDF_CTX_free);
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<uint8_t*>(secret.data()),
                                        secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, const_cast<char*>(label.data()),
                                        label.size()),
      OSSL_PARAM_construct_end()};
  const int done = EVP_KDF_derive(context.get(), out.data(), out.size(), parameters);
  SEALANE_CHECK(done == 1, "HKDF with SHA-256 is missing");
}

LaneSecret KeyChain::current() const {
  std::array<uint8_t, Key::kBytes + kIvBytes + sizeof(uint64_t)> material;
  hkdf_expand(secret_.secret(), "sealane lane 1", material);
  LaneSecret secret;
  secret.aead = engine_->make(*Key::from_bytes(Bytes(material).first(Key::kBytes)));
  std::copy_n(material.begin() + Key::kBytes, kIvBytes, secret.iv_law.mask.begin());
  secret.iv_law.channel = load_le<uint64_t>(material.data() + Key::kBytes + kIvBytes);
  wipe(material);
  return secret;
}

LaneSecret KeyChain::next(uint64_t records) {
  std::array<uint8_t, sizeof records> count;
  store_le(count.data(), records);
  std::array<uint8_t, Key::kBytes> following;
  hkdf_expand(secret_.secret(), concat("sealane next 1", as_text(count)), following);
  secret_ = *Key::from_bytes(following);
  wipe(following);
  return current();
}

Status RekeyingSendLane::seal_exposed(const RecordHeader& header, const Delivery& source,
                                      MutableBytes exposed) {
  if (lane_.exhausted(source.bytes())) lane_.rotate(chain_.next(lane_.ledger().head()));
  return lane_.seal_exposed(header, source, exposed);
}

Result<RecordHeader> RekeyingReceiveLane::open(Bytes record, MutableBytes out,
                                               const Delivery& beside) {
  // Read apart from what the lane itself reads: a lie here can only make the tag fail.
  const auto claimed = RecordHeader::parse(record);
  if (claimed && claimed->epoch == lane_.epoch().number + 1) {
    lane_.rotate(chain_.next(lane_.received()));
  }
  return lane_.open(record, out, beside);
}

}  // namespace sealane
