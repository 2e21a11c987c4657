// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 of bytes that come piece by piece. Pure, not synchronised.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"

struct evp_md_ctx_st;

namespace sealane {

class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  Sha256();  // aborts only if OpenSSL has no SHA-256
  void add(Bytes bytes);
  Digest digest() const;     // of everything so far
  std::string text() const;  // the same in hexadecimal digits

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace sealane
