// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/key_ids.h"

#include <algorithm>
#include <array>
#include <map>
#include <variant>

#include "base/text.h"
#include "core/session/key_chain.h"

namespace sealane {
namespace {

std::string ranks_of(const std::vector<uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += concat(i == 0 ? "" : ", ", ranks[i]);
  return text;
}

}  // namespace

std::string key_id(const Credentials& credentials) {
  const auto* preshared = std::get_if<PresharedKey>(&credentials);
  if (preshared == nullptr) return {};
  std::array<uint8_t, 8> id;
  hkdf_expand(preshared->key.secret(), "sealane key id 1", id);
  return concat(load_le<uint64_t>(id.data()));
}

std::optional<Error> who_has_another_key(const std::vector<std::string>& ids) {
  std::map<std::string, std::vector<uint32_t>> holders;
  for (uint32_t rank = 0; rank < ids.size(); ++rank) {
    if (!ids[rank].empty()) holders[ids[rank]].push_back(rank);
  }
  if (holders.size() < 2) return std::nullopt;
  const auto fewer = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  const auto most = std::max_element(holders.begin(), holders.end(), fewer);
  std::vector<uint32_t> others;
  for (const auto& [key, ranks] : holders) {
    if (key != most->first) others.insert(others.end(), ranks.begin(), ranks.end());
  }
  std::sort(others.begin(), others.end());
  const char* const advice = ": give every rank the same key file";
  if (most->second.size() <= others.size()) {
    const auto& [first, second] = std::minmax(most->second, others);
    return crypto_error(
        concat(ranks_of(first), " and ", ranks_of(second), " have different keys", advice));
  }
  return crypto_error(concat(ranks_of(others), others.size() == 1 ? " has" : " have",
                             " another key than the others", advice));
}

}  // namespace sealane
