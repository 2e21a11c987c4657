// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/thread.h"

#include <pthread.h>
#include <signal.h>

#include <memory>
#include <new>

namespace sealane {
namespace {

struct Task {
  void (*body)(void*);
  void* self;
};

void* run(void* data) {
  const std::unique_ptr<Task> task(static_cast<Task*>(data));
  task->body(task->self);
  return nullptr;
}

}  // namespace

bool start_thread(const char* name, void (*body)(void*), void* self) {
  std::unique_ptr<Task> task(new (std::nothrow) Task{body, self});
  if (!task) return false;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool running = pthread_create(&thread, nullptr, &run, task.get()) == 0;
  if (running) {
    static_cast<void>(task.release());
    pthread_setname_np(thread, name);
    pthread_detach(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return running;
}

}  // namespace sealane
