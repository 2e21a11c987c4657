// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
//   "evidence" (8)  public key (32)  signature (64)  evidence

#include "core/session/attested_key.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/check.h"

namespace sealane {
namespace {

constexpr std::string_view kEvidenceMagic = "evidence";
constexpr std::string_view kKeyLabel = "sealane attested key 1";
constexpr std::string_view kSessionLabel = "sealane attested session 1";
constexpr size_t kKeyNameAt = kEvidenceMagic.size();
constexpr size_t kSignatureAt = kKeyNameAt + 32;
constexpr size_t kEvidenceAt = kSignatureAt + 64;
static_assert(kEvidenceAt == kPresentedExtraBytes);

struct FreeEvp {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }  // cleanses what it holds
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using EvpKey = std::unique_ptr<EVP_PKEY, FreeEvp>;
using EvpDigest = std::unique_ptr<EVP_MD_CTX, FreeEvp>;

Bytes bytes_of_label(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Sha256::Digest binding_of(Bytes name) {
  Sha256 hash;
  hash.add(bytes_of_label(kKeyLabel));
  hash.add(name);
  return hash.digest();
}

// What is signed: the session's own value, never as it is.
Sha256::Digest signed_in(Bytes session_binding) {
  Sha256 hash;
  hash.add(bytes_of_label(kSessionLabel));
  hash.add(session_binding);
  return hash.digest();
}

EvpKey private_half(const Key& seed) {
  EvpKey key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.secret().data(),
                                          seed.secret().size()));
  SEALANE_CHECK(key != nullptr, "Ed25519 is missing");
  return key;
}

}  // namespace

AttestedKey::AttestedKey(Key seed, const std::array<uint8_t, 32>& name)
    : seed_(std::move(seed)), name_(name), binding_(binding_of(name)) {}

AttestedKey AttestedKey::random(Random& random) {
  Key seed = Key::random(random);
  std::array<uint8_t, 32> name{};
  size_t bytes = name.size();
  const EvpKey key = private_half(seed);
  const int done = EVP_PKEY_get_raw_public_key(key.get(), name.data(), &bytes);
  SEALANE_CHECK(done == 1 && bytes == name.size(), "Ed25519 failed");
  return {std::move(seed), name};
}

std::vector<uint8_t> AttestedKey::present(Bytes session_binding, Bytes evidence) const {
  std::vector<uint8_t> out(kEvidenceAt + evidence.size());
  std::copy(kEvidenceMagic.begin(), kEvidenceMagic.end(), out.begin());
  std::copy(name_.begin(), name_.end(), out.begin() + kKeyNameAt);
  std::copy(evidence.begin(), evidence.end(), out.begin() + kEvidenceAt);
  const EvpKey key = private_half(seed_);
  const EvpDigest context(EVP_MD_CTX_new());
  const Sha256::Digest said = signed_in(session_binding);
  size_t bytes = kEvidenceAt - kSignatureAt;
  const bool done =
      context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestSign(context.get(), &out[kSignatureAt], &bytes, said.data(), said.size()) == 1;
  SEALANE_CHECK(done && bytes == kEvidenceAt - kSignatureAt, "Ed25519 failed");
  return out;
}

Result<Presented> read_presented(Bytes session_binding, Bytes sent) {
  if (sent.empty()) return peer_error("it sent no evidence");
  if (sent.size() <= kEvidenceAt ||
      !std::equal(kEvidenceMagic.begin(), kEvidenceMagic.end(), sent.begin())) {
    return peer_error("what it sent is no evidence");
  }
  const Bytes name = sent.subspan(kKeyNameAt, kSignatureAt - kKeyNameAt);
  const EvpKey key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, name.data(), name.size()));
  const EvpDigest context(EVP_MD_CTX_new());
  const Sha256::Digest said = signed_in(session_binding);
  const bool genuine =
      key && context &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestVerify(context.get(), &sent[kSignatureAt], kEvidenceAt - kSignatureAt, said.data(),
                       said.size()) == 1;
  if (!genuine) return peer_error("its evidence is not of this session");
  return Presented{binding_of(name), sent.subspan(kEvidenceAt)};
}

}  // namespace sealane
