// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/device/thread.h"

#include <pthread.h>
#include <signal.h>

#include <thread>

namespace sealane::emu {

void start_thread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([name, run = std::move(body)] {
    pthread_setname_np(pthread_self(), name);
    run();
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace sealane::emu
