// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "held_key.h"

#include "base/bytes.h"

namespace sealane::preload {

bool HeldKey::makes(const Context* context, const GcmBlock& keystream) {
  GcmBlock made{};
  int bytes = 0;
  libcrypto_.mark_errors();
  if (copy_ == nullptr) copy_ = libcrypto_.make();
  const bool shown = copy_ != nullptr && libcrypto_.copy(copy_, context) == 1 &&
                     libcrypto_.cipher_update(copy_, made.data(), &bytes, made.data(),
                                              static_cast<int>(made.size())) > 0;
  if (copy_ != nullptr) libcrypto_.reset(copy_);
  libcrypto_.drop_errors();
  const bool same = constant_time_equal(made, keystream);
  wipe(made);
  return shown && same;
}

}  // namespace sealane::preload
