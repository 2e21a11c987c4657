// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/born_here.h"

#include <pthread.h>

#include <atomic>

#include "base/check.h"

namespace sealane::net {
namespace {

std::atomic<uint32_t> forks{0};

}  // namespace

BornHere::BornHere() {
  static const int failed = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  SEALANE_CHECK(failed == 0, "out of memory");
  forks_ = forks.load(std::memory_order_relaxed);
}

bool BornHere::elsewhere() const { return forks.load(std::memory_order_relaxed) != forks_; }

Error of_the_parent() {
  return usage_error(
      "a child of fork() cannot use its parent's connections: keys and sockets stay with the "
      "parent");
}

}  // namespace sealane::net
