// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/session/identity.h"

#include <algorithm>

#include "base/text.h"

namespace sealane {
namespace {

bool allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

std::string Identity::uri() const { return concat("sealane://", group, "/", rank); }

Certificates::~Certificates() {
  wipe({reinterpret_cast<uint8_t*>(private_key.data()), private_key.size()});
}

Status check_identity(const Identity& identity) {
  if (identity.group.empty() || identity.group.size() > kGroupNameMax ||
      !std::all_of(identity.group.begin(), identity.group.end(), allowed)) {
    return usage_error(concat("a group name has 1 to ", kGroupNameMax,
                              " letters, digits, '-', '_' or '.', not '", identity.group, "'"));
  }
  if (identity.size == 0 || identity.size > kRanksMax) {
    return usage_error(concat("a group has 1 to ", kRanksMax, " ranks, not ", identity.size));
  }
  if (identity.rank >= identity.size) {
    return usage_error(concat("rank ", identity.rank, " is not of a group of ", identity.size));
  }
  return {};
}

}  // namespace sealane
