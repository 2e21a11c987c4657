// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/session/identity.h"

#include <algorithm>

#include "base/check.h"
#include "base/registers.h"
#include "base/text.h"

namespace sealane {
namespace {

bool allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

std::string Identity::uri() const { return concat("sealane://", group, "/", rank); }

SecretPem::SecretPem(std::string_view text) : bytes_(text.size()) {
  SEALANE_CHECK(bytes_ <= kBytesMax, "a private key of that size has no place");
  if (text.empty()) return;
  memory_ = SecretMemory::take(bytes_);
  std::copy(text.begin(), text.end(), memory_.get());
  clear_vector_registers();
}

std::string_view SecretPem::view() const {
  if (memory_ == nullptr || !SecretMemory::alive(memory_.get(), bytes_)) return {};
  return {reinterpret_cast<const char*>(memory_.get()), bytes_};
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
