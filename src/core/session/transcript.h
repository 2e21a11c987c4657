// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A running SHA-256 of what passed in one direction. TLS leaves some bytes unauthenticated (the
// version in a record's head, say); two ends that put both directions' digests into their key agree
// on every byte, or on nothing. Pure, not synchronised.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/bytes.h"

struct evp_md_ctx_st;

namespace sealane {

class Transcript {
 public:
  using Digest = std::array<uint8_t, 32>;

  Transcript();  // aborts only if OpenSSL has no SHA-256
  void add(Bytes bytes);
  Digest digest() const;  // of everything so far

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace sealane
