// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "support/fail.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace examples {

namespace {

const char* program = "example";

[[noreturn]] void end(int code, const char* format, va_list values) {
  std::fprintf(stderr, "%s: ", program);
  std::vfprintf(stderr, format, values);
  std::fputc('\n', stderr);
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

void set_program_name(const char* argv0) {
  const char* slash = std::strrchr(argv0, '/');
  program = slash != nullptr ? slash + 1 : argv0;
}

void fail(const char* format, ...) {
  va_list values;
  va_start(values, format);
  end(1, format, values);
}

void fail_usage(const char* format, ...) {
  va_list values;
  va_start(values, format);
  end(2, format, values);
}

}  // namespace examples
