// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/fork_guard.h"

#include <pthread.h>

#include <mutex>
#include <vector>

#include "base/check.h"
#include "transport/socket.h"

namespace sealane {
namespace {

struct Guarded {
  std::mutex mutex;
  std::vector<ForkSensitive*> objects;
};

// Never destroyed: a static communicator of the program may end later than anything here.
Guarded& guarded() {
  static auto* const all = new Guarded;
  return *all;
}

void before() {
  guarded().mutex.lock();
  for (ForkSensitive* object : guarded().objects) object->before_fork();
}

void after_in_parent() {
  for (ForkSensitive* object : guarded().objects) object->after_fork_in_parent();
  guarded().mutex.unlock();
}

void after_in_child() {
  for (ForkSensitive* object : guarded().objects) object->after_fork_in_child();
  guarded().mutex.unlock();
}

void register_once() {
  Socket::register_fork_handlers();  // what ends in a child has no socket to close any more
  static const int failed = pthread_atfork(before, after_in_parent, after_in_child);
  SEALANE_CHECK(failed == 0, "out of memory");
}

}  // namespace

ForkGuard::ForkGuard(ForkSensitive& object) : object_(object) {
  register_once();
  const std::lock_guard lock(guarded().mutex);
  guarded().objects.push_back(&object);
}

ForkGuard::~ForkGuard() {
  const std::lock_guard lock(guarded().mutex);
  std::erase(guarded().objects, &object_);
}

}  // namespace sealane
