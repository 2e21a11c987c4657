// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/result.h"

#include <cerrno>
#include <cstring>
#include <string>

namespace sealane {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::io:
      return "io";
    case ErrorKind::peer:
      return "peer";
    case ErrorKind::crypto:
      return "crypto";
    case ErrorKind::internal:
      return "internal";
  }
  return "unknown";
}

Error io_error(std::string what, int error_number) {
  char buffer[128];
  // The GNU strerror_r: the result may or may not be `buffer`, and is always terminated.
  const char* reason = strerror_r(error_number, buffer, sizeof buffer);
  return {ErrorKind::io, std::move(what) + ": " + reason};
}

}  // namespace sealane
