// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of files that several processes of a job are told to write. Pure but for the process's
// number.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

#include "base/text.h"

namespace sealane {

// "%p" in a file's name is the process's number, so that each process of a job has its own.
inline std::string output_path(std::string_view pattern) {
  std::string out(pattern);
  if (const size_t at = out.find("%p"); at != std::string::npos) {
    out.replace(at, 2, concat(::getpid()));
  }
  return out;
}

}  // namespace sealane
