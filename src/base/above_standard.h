// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// For whatever opens a file inside a program of somebody else's.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace sealane {

// The file of `number` under a number above those of stdin, stdout and stderr, and closed when the
// program becomes another one. Where a program runs without these, the kernel gives their numbers
// to the next file that is opened, and whatever is said, by the program or by us, would go there.
// -1 and errno: there was no file, or there is no room.
inline int above_standard(int number) {
  if (number < 0 || number > STDERR_FILENO) return number;
  const int above = ::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(number);
  errno = error;
  return above;
}

}  // namespace sealane
