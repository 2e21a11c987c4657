// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// exit() runs its handlers while other threads go on, and takes down what they use: OpenSSL, a
// GPU's driver, the program's log. Who uses those holds exit() up meanwhile:
//
//   const ExitHold hold;
//   if (!hold) return exiting_error();
//
// The handler that waits is registered with the first hold, behind OpenSSL's own, and so runs
// before that. It waits for ten seconds at most, so whoever holds for longer than a moment looks at
// process_exits(). What the thread holds that called exit() itself is not waited for. Freeing is
// use, too (let_go()), and so is the end of a thread: OpenSSL keeps something for each that has
// used it, to be freed there. So a thread of our own leaves nothing behind its holds, nor does one
// of the program's whose hold ends while the process exits; exit() waits for others that end before
// its handler is through. (One that ends later, on another thread's word than that of an exit()
// handler, is the program's to look after.)
//
// Concurrency: any thread; a hold ends on the thread that made it. A child of fork() has the holds
//              of the thread that made it, and no others.
#pragma once

#include <memory>
#include <utility>

#include "base/result.h"

namespace sealane {

class ExitHold {
 public:
  enum class Thread { of_the_program, ours };
  explicit ExitHold(Thread thread = Thread::of_the_program);
  ~ExitHold();
  ExitHold(const ExitHold&) = delete;
  ExitHold& operator=(const ExitHold&) = delete;

  // False: the process exits, and what there was to be held may be gone.
  explicit operator bool() const { return held_; }

 private:
  bool held_;
  bool ours_;
};

bool process_exits();
Error exiting_error();

// Ends it, or, where the process exits, leaves it as it is.
template <typename Object>
void let_go(Object object) {
  const ExitHold hold;
  auto owned = std::make_unique<Object>(std::move(object));
  if (!hold) static_cast<void>(owned.release());
}

}  // namespace sealane
