// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The program that `run` and `record` start, looked at before anything is done: where it is, and
// whether the runtime can be loaded into it at all. Pure but for reading files.
#pragma once

#include <string>

#include "base/result.h"

namespace sealane::cli {

// Where execvp would find it. An io error says why it cannot be run.
Result<std::string> find_program(const std::string& program);

// "it is linked statically": why the loader would leave a preloaded library out of the program at
// `path`, or of the interpreter it names. Empty: nothing speaks against it.
std::string why_not_preloadable(const std::string& path);

}  // namespace sealane::cli
