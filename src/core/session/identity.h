// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Who a rank says it is, what it proves that with, and who may judge its evidence.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "seal/key.h"
#include "seal/secret_memory.h"

namespace sealane {

// Ranks that one group can have: a rank has 10 bits in the number of a pair's lane.
constexpr uint32_t kRanksMax = 1024;
constexpr size_t kGroupNameMax = 64;

struct Identity {
  std::string group;
  uint32_t size = 0;
  uint32_t rank = 0;

  // As certificates carry it: "sealane://group/rank".
  std::string uri() const;

  bool operator==(const Identity&) const = default;
};

// A usage error if the group name is empty, too long or has other characters than letters, digits,
// '-', '_' and '.', or if the rank is not of the group.
Status check_identity(const Identity& identity);

// One secret that all ranks share. It proves membership and nothing more: any holder can pose as
// any rank.
struct PresharedKey {
  Key key;
};

// Text in secret memory. Copies refer to the same.
class SecretPem {
 public:
  static constexpr size_t kBytesMax = SecretMemory::kBytesMax / 2;  // RSA of 8192 bits has 6.4 KB

  SecretPem() = default;
  explicit SecretPem(std::string_view text);  // at most kBytesMax; the text is the caller's to wipe

  std::string_view view() const;  // empty in a child of the process that made it

 private:
  std::shared_ptr<uint8_t> memory_;
  size_t bytes_ = 0;
};

// Binds a rank: the subject alternative name of each certificate is the rank's uri(). PEM texts.
struct Certificates {
  std::string certificate;  // own, followed by intermediates if there are any
  SecretPem private_key;
  std::string authorities;   // whose signatures count
  int64_t unix_seconds = 0;  // what "expired" is judged by: the core has no clock
};

// Binds a rank: a secret for every other rank of the group, which only the two have. They got it
// when they joined another group together (SessionKeys::pair), by whatever they proved there.
struct PairKeys {
  std::vector<std::optional<Key>> by_rank;  // none for the own
};

using Credentials = std::variant<PresharedKey, Certificates, PairKeys>;

// Contributes and checks attestation evidence. `binding` is unique to the session and the rank that
// produces: evidence that contains it cannot be taken from another session.
class Attestor {
 public:
  virtual ~Attestor() = default;
  virtual Result<std::vector<uint8_t>> produce(Bytes binding) = 0;
  virtual Status check(uint32_t peer, Bytes binding, Bytes evidence) = 0;
};

}  // namespace sealane
