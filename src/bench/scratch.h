// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A directory for the files of one run: keys, pipes, counters. It is gone afterwards, also when
// the user interrupts: while a Scratch lives, the signals that would end this process wait, whoever
// waits for children asks interrupted() now and then, and the destructor lets the signal have its
// way once the files are gone. Signals that would not end it, because they are ignored (nohup) or
// blocked already, are left as they are. One at a time, made before the process has threads.
#pragma once

#include <signal.h>

#include <string>

namespace sealane::bench {

class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }  // empty: it could not be made

 private:
  std::string path_;
  sigset_t before_;
};

// A signal that would have ended this process waits.
bool interrupted();

// What a child needs first: it is not the one that has to tidy up.
void let_signals_end_this_process();

// The last line with anything in it; empty if there is none. What a program died of, mostly.
std::string last_line(const std::string& file);

}  // namespace sealane::bench
