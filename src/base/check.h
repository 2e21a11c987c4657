// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Assertions that stay on in release builds. A failed check is a bug in Sealane, never bad input.
// The handler may throw (the preload does, to step aside at its boundary); if it returns, the
// process aborts.
#pragma once

namespace sealane {

using CheckHandler = void (*)(const char* file, int line, const char* what);

// Not synchronised: set it once, before other threads start. nullptr restores the default, which
// writes one line to stderr.
void set_check_handler(CheckHandler handler);

[[noreturn]] void check_failed(const char* file, int line, const char* what);

}  // namespace sealane

#define SEALANE_CHECK(condition, what)                  \
  (__builtin_expect(static_cast<bool>(condition), true) \
       ? static_cast<void>(0)                           \
       : ::sealane::check_failed(__FILE__, __LINE__, "(" #condition "): " what))
