// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A machine that refuses: what the programs of these tests do to the runtime from outside. Each
// stands in front of a function of libc, which the preload finds in the program first.
#pragma once

#include <sys/types.h>

namespace sealane::test {

// The preload may start so many threads; the next ones fail. Before the first.
void allow_threads(int count);

// No memory can be locked; the system swaps or does not. The driver must not be up yet.
void refuse_locking(bool swaps);

// Encrypts and checks something with libcrypto, as any program may.
bool encrypts();

// The same in a library that passes for the driver's, with tags as OpenSSL 3's parameters.
bool seals_by_parameters();

// Another process that stops threads of the runtime for a while, again and again, as a hypervisor
// or a debugger would.
class Staller {
 public:
  Staller();
  ~Staller();
  Staller(const Staller&) = delete;
  Staller& operator=(const Staller&) = delete;
  void begin();
  int end();  // how often it stalled somebody; a large number if this system does not allow it

 private:
  pid_t child_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
};

}  // namespace sealane::test
