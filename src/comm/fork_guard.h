// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What must not survive fork(): keys, because parent and child would seal different bytes at the
// same position; sockets, because they keep a dead rank alive for the others; threads, because they
// do not exist in the child.
//
// Concurrency: guards are made and end on any thread. fork() waits until all objects hold still, so
//              before_fork() must not wait for long. A child made without handlers (a bare clone)
//              is not seen here: who seals also compares process numbers.
#pragma once

namespace sealane {

class ForkSensitive {
 public:
  virtual void before_fork() = 0;  // from here on nothing may change
  virtual void after_fork_in_parent() = 0;
  virtual void after_fork_in_child() = 0;  // on the only thread there is; may allocate

 protected:
  ~ForkSensitive() = default;
};

// Tells the object of every fork() for as long as the guard lives.
class ForkGuard {
 public:
  explicit ForkGuard(ForkSensitive& object);
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();

 private:
  ForkSensitive& object_;
};

}  // namespace sealane
