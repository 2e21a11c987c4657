// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/session/hello.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace sealane {
namespace {

constexpr std::string_view kMagic = "sealane";
constexpr size_t kVersionAt = kMagic.size();
constexpr size_t kLengthAt = kVersionAt + 1;
constexpr size_t kNonceAt = kLengthAt + 2;
constexpr size_t kSizeAt = kNonceAt + 32;
constexpr size_t kRankAt = kSizeAt + 4;
constexpr size_t kProofAt = kRankAt + 4;
constexpr size_t kGroupAt = kProofAt + 1;
constexpr uint8_t kTlsHandshake = 0x16;  // how version 1 began

Error other_version(int version) {
  return peer_error(concat("the peer speaks version ", version,
                           " of Sealane's protocol, this rank ", static_cast<int>(kProtocolVersion),
                           ": run the same Sealane on every rank"));
}

}  // namespace

std::vector<uint8_t> Hello::encode() const {
  std::vector<uint8_t> out(kGroupAt + claimed.group.size());
  std::copy(kMagic.begin(), kMagic.end(), out.begin());
  out[kVersionAt] = kProtocolVersion;
  store_le(&out[kLengthAt], static_cast<uint16_t>(out.size() - kNonceAt));
  std::copy(nonce.begin(), nonce.end(), out.begin() + kNonceAt);
  store_le(&out[kSizeAt], claimed.size);
  store_le(&out[kRankAt], claimed.rank);
  out[kProofAt] = static_cast<uint8_t>(proof);
  std::copy(claimed.group.begin(), claimed.group.end(), out.begin() + kGroupAt);
  return out;
}

Result<std::optional<size_t>> Hello::length(Bytes stream) {
  if (!stream.empty() && stream[0] == kTlsHandshake) return other_version(1);
  const size_t known = std::min(stream.size(), kMagic.size());
  if (as_text(stream.first(known)) != kMagic.substr(0, known)) {
    return peer_error("the peer does not speak Sealane's protocol");
  }
  if (stream.size() > kVersionAt && stream[kVersionAt] != kProtocolVersion) {
    return other_version(stream[kVersionAt]);
  }
  if (stream.size() < kNonceAt) return std::optional<size_t>();
  const size_t whole = kNonceAt + load_le<uint16_t>(&stream[kLengthAt]);
  if (whole <= kGroupAt || whole > kGroupAt + kGroupNameMax) {
    return peer_error("the peer's greeting is malformed");
  }
  return stream.size() < whole ? std::optional<size_t>() : std::optional<size_t>(whole);
}

Result<Hello> Hello::decode(Bytes whole) {
  const auto bytes = length(whole);
  if (!bytes) return bytes.error();
  if (!*bytes || **bytes != whole.size() ||
      whole[kProofAt] > static_cast<uint8_t>(Proof::certificate)) {
    return peer_error("the peer's greeting is malformed");
  }
  Hello hello;
  std::copy_n(whole.begin() + kNonceAt, hello.nonce.size(), hello.nonce.begin());
  hello.claimed.size = load_le<uint32_t>(&whole[kSizeAt]);
  hello.claimed.rank = load_le<uint32_t>(&whole[kRankAt]);
  hello.claimed.group.assign(whole.begin() + kGroupAt, whole.end());
  hello.proof = static_cast<Proof>(whole[kProofAt]);
  return hello;
}

}  // namespace sealane
