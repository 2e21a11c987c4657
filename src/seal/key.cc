// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "seal/key.h"

#include <algorithm>

#include "base/registers.h"
#include "base/text.h"

namespace sealane {

Key Key::random(Random& random) {
  Key key;
  random.fill(*key.bytes_);
  return key;
}

Result<Key> Key::from_bytes(Bytes bytes) {
  if (bytes.size() != kBytes) {
    return usage_error(concat("a key has ", kBytes, " bytes, not ", bytes.size()));
  }
  Key key;
  std::copy(bytes.begin(), bytes.end(), key.bytes_->begin());
  clear_vector_registers();
  return key;
}

Key Key::duplicate() const {
  Key copy;
  copy.bytes_ = bytes_;
  return copy;
}

}  // namespace sealane
