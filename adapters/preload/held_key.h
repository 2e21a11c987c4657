// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which key does libcrypto hold in a context? It does not say; but it shows what it seals with: a
// block of zeros, sealed in a copy of the context, is the message's first block of keystream. The
// copy is emptied again at once, so that no key stays longer than the context that has it, and the
// block is seen by nobody.
//
// Used by one thread at a time, as its context is.
#pragma once

#include "libcrypto.h"
#include "seal/gcm_width.h"

namespace sealane::preload {

class HeldKey {
 public:
  explicit HeldKey(const Libcrypto& libcrypto) : libcrypto_(libcrypto) {}
  ~HeldKey() {
    if (copy_ != nullptr) libcrypto_.free(copy_);
  }
  HeldKey(const HeldKey&) = delete;
  HeldKey& operator=(const HeldKey&) = delete;

  // Before the first byte of a message, after any additional data. Either direction makes the same
  // of zeros. False also where it cannot be told: no memory, or a provider that copies nothing.
  bool makes(const Context* context, const GcmBlock& keystream);

 private:
  const Libcrypto& libcrypto_;
  Context* copy_ = nullptr;  // empty but within makes(); from the first time on
};

}  // namespace sealane::preload
