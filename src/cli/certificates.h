// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// An authority for one training group and a certificate for each of its ranks, each bound to its
// rank by the name sealane://GROUP/RANK. Keys are P-256. Makes no files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace sealane::cli {

// PEM. Whoever has `key` is who `certificate` names.
struct CertifiedKey {
  std::string certificate;
  std::string key;
};

struct GroupCertificates {
  CertifiedKey authority;  // its key is needed for further ranks only
  std::vector<CertifiedKey> ranks;
};

Result<GroupCertificates> make_certificates(const std::string& group, uint32_t ranks,
                                            uint32_t days);

}  // namespace sealane::cli
