// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether an object was made by this process or came with fork(). In a child the threads that serve
// sockets do not exist and a lock may be held by one of them for ever: who finds that he came with
// fork() touches nothing and says so.
//
// Concurrency: any thread.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace sealane::net {

class BornHere {
 public:
  BornHere();
  bool elsewhere() const;

 private:
  uint32_t forks_;  // there had been so many
};

// What every call in a child gets.
Error of_the_parent();

}  // namespace sealane::net
