// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/bytes.h"

#include <string.h>

namespace sealane {

bool constant_time_equal(Bytes a, Bytes b) {
  if (a.size() != b.size()) return false;
  volatile uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference = difference | (a[i] ^ b[i]);
  return difference == 0;
}

void wipe(MutableBytes secret) {
  if (!secret.empty()) explicit_bzero(secret.data(), secret.size());
}

}  // namespace sealane
