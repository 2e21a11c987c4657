// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do signals wait for the files to go, and only those that would end this process?

#include "bench/scratch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace sealane::bench {
namespace {

// How a process ended that did `what`: its exit code, or minus the signal.
int end_of(const std::function<int()>& what) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
    _exit(what());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Scratch, HoldsASignalUntilTheFilesAreGone) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EQ(end_of([&] {
                const Scratch scratch;
                raise(signal);
                if (!interrupted()) _exit(1);
                return 0;  // the destructor does not let it
              }),
              -signal);
  }
}

TEST(Scratch, WhatIsIgnoredInterruptsNothing) {
  EXPECT_EQ(end_of([] {
              ::signal(SIGHUP, SIG_IGN);  // nohup
              const Scratch scratch;
              raise(SIGHUP);
              return interrupted() ? 1 : 0;
            }),
            0);
}

TEST(Scratch, WhatWasHeldBeforeInterruptsNothing) {
  EXPECT_EQ(end_of([] {
              sigset_t held;
              sigemptyset(&held);
              sigaddset(&held, SIGTERM);
              pthread_sigmask(SIG_BLOCK, &held, nullptr);
              const Scratch scratch;
              raise(SIGTERM);
              return interrupted() ? 1 : 0;  // it would not end us afterwards either
            }),
            0);
}

}  // namespace
}  // namespace sealane::bench
