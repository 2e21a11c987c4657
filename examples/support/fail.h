// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How an example ends when something is wrong: one line on stderr, "<program>: <what>", exit 1; or
// exit 2 if the command line is wrong. Exits at once, without destructors: CUDA calls may be what
// failed.
#pragma once

namespace examples {

// What fail() calls the program; set once by Options.
void set_program_name(const char* argv0);

[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...);
[[noreturn, gnu::format(printf, 1, 2)]] void fail_usage(const char* format, ...);

}  // namespace examples
