// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What all processes of a user share of a NUMA node, in units: worker threads, memory for slots. A
// unit is a byte of a file in /dev/shm on which the process that has it holds a lock, so the units
// of a process that dies are free at once, however it died. Nothing is ever written.
//
// Failure: where there is no such file (no /dev/shm, somebody else's file of that name) there is no
// common bound and every process gets what it asks for.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "os/descriptor.h"

namespace sealane {

class SharedUnits {
 public:
  // `folder`: /dev/shm, or a test's. `what`: names the file. `count`: units of the node.
  SharedUnits(const std::string& folder, const char* what, size_t node, size_t count);

  // Has as many as wanted from now on, or as many as there are; says how many.
  size_t want(size_t wanted);
  // In the child of a fork: they are the parent's.
  void forget() { file_ = Descriptor(-1); }

 private:
  bool set(size_t unit, short lock);  // F_WRLCK or F_UNLCK

  Descriptor file_;
  const size_t first_;
  const size_t count_;
  std::vector<size_t> held_;
};

}  // namespace sealane
