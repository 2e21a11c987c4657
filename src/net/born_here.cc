// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/born_here.h"

namespace sealane::net {

Error of_the_parent() {
  return usage_error(
      "a child of fork() cannot use its parent's connections: keys and sockets stay with the "
      "parent");
}

}  // namespace sealane::net
