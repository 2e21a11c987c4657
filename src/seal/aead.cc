// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "seal/aead.h"

#include "base/check.h"
#include "seal/delivery.h"

namespace sealane {
namespace {

uint64_t total_bytes(std::span<const Bytes> pieces) {
  uint64_t total = 0;
  for (const Bytes piece : pieces) total += piece.size();
  return total;
}

Status verdict(bool genuine, MutableBytes plaintext) {
  if (genuine) return {};
  wipe(plaintext);
  return crypto_error("authentication failed: the record was modified or sealed with another key");
}

}  // namespace

void Aead::seal(const Iv& iv, Bytes additional, Bytes plaintext, MutableBytes ciphertext,
                Tag& tag) const {
  seal(iv, additional, std::span(&plaintext, 1), ciphertext, tag);
}

void Aead::seal(const Iv& iv, Bytes additional, std::span<const Bytes> plaintext,
                MutableBytes ciphertext, Tag& tag) const {
  SEALANE_CHECK(total_bytes(plaintext) == ciphertext.size(), "seal: sizes differ");
  SEALANE_CHECK(ciphertext.size() <= kGcmMessageBytesMax, "seal: longer than GCM allows");
  do_seal(iv, additional, plaintext, ciphertext, tag);
}

Status Aead::open(const Iv& iv, Bytes additional, Bytes ciphertext, const Tag& tag,
                  MutableBytes plaintext) const {
  return open(iv, additional, std::span(&ciphertext, 1), tag, plaintext);
}

Status Aead::open(const Iv& iv, Bytes additional, std::span<const Bytes> ciphertext, const Tag& tag,
                  MutableBytes plaintext) const {
  SEALANE_CHECK(total_bytes(ciphertext) == plaintext.size(), "open: sizes differ");
  SEALANE_CHECK(plaintext.size() <= kGcmMessageBytesMax, "open: longer than GCM allows");
  return verdict(do_open(iv, additional, ciphertext, tag, plaintext), plaintext);
}

void Aead::seal(const Iv& iv, Bytes additional, const Delivery& source, MutableBytes ciphertext,
                Tag& tag) const {
  SEALANE_CHECK(source.bytes() == ciphertext.size(), "seal: sizes differ");
  SEALANE_CHECK(ciphertext.size() <= kGcmMessageBytesMax, "seal: longer than GCM allows");
  do_seal_delivered(iv, additional, source, ciphertext, tag);
}

Status Aead::open(const Iv& iv, Bytes additional, Bytes ciphertext, const Tag& tag,
                  MutableBytes plaintext, const Delivery& beside) const {
  SEALANE_CHECK(ciphertext.size() == plaintext.size(), "open: sizes differ");
  SEALANE_CHECK(plaintext.size() <= kGcmMessageBytesMax, "open: longer than GCM allows");
  return verdict(do_open_beside(iv, additional, ciphertext, tag, plaintext, beside), plaintext);
}

// What is read again at once is not sent past the caches.
void Aead::do_seal_delivered(const Iv& iv, Bytes additional, const Delivery& source,
                             MutableBytes ciphertext, Tag& tag) const {
  Delivery cached = source;
  cached.streamed = false;
  carry_out(cached);
  const Bytes plaintext = source.empty() ? source.first : Bytes(source.to);
  do_seal(iv, additional, std::span(&plaintext, 1), ciphertext, tag);
}

bool Aead::do_open_beside(const Iv& iv, Bytes additional, Bytes ciphertext, const Tag& tag,
                          MutableBytes plaintext, const Delivery& beside) const {
  carry_out(beside);
  return do_open(iv, additional, std::span(&ciphertext, 1), tag, plaintext);
}

}  // namespace sealane
