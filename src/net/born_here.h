// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether an object was made by this process or came with fork() or a bare clone. In a child the
// threads that serve sockets do not exist and a lock may be held by one of them for ever: who finds
// that he came with fork() touches nothing and says so. Handlers of fork() do not run for every
// kind of child, so secret memory tells, which is empty in all of them.
//
// Concurrency: any thread.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "seal/secret_memory.h"

namespace sealane::net {

class BornHere {
 public:
  bool elsewhere() const { return !here_.alive(); }

 private:
  Secret<uint8_t> here_;
};

// What every call in a child gets.
Error of_the_parent();

}  // namespace sealane::net
