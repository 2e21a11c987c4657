// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace sealane {
namespace {

void print_failure(const char* file, int line, const char* what) {
  std::fprintf(stderr, "sealane: broken invariant at %s:%d %s\n", file, line, what);
}

CheckHandler check_handler = print_failure;

}  // namespace

void set_check_handler(CheckHandler handler) {
  check_handler = handler != nullptr ? handler : print_failure;
}

void check_failed(const char* file, int line, const char* what) {
  check_handler(file, line, what);
  std::abort();
}

}  // namespace sealane
