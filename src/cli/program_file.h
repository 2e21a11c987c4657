// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The program that `run` and `record` start, looked at before anything is done: where it is, and
// whether the runtime can be loaded into it at all. Pure but for reading files.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace sealane::cli {

// Where execvp would find it. An io error says why it cannot be run.
Result<std::string> find_program(const std::string& program);

// What runs the script at `path` after its "#!" line, and what runs that, by their files; of
// env(1), also whom it finds. None for other programs.
std::vector<std::string> interpreters_of(const std::string& path);

// An io error for a script that names an interpreter that cannot be run.
Status check_interpreters(const std::string& path);

// Where the loader may find a library, as far as the name and the environment say.
std::vector<std::string> places_of_library(const std::string& name);

// "it is linked statically": why the loader would leave a preloaded library out of the program at
// `path`, or of the interpreter it names. Empty: nothing speaks against it.
std::string why_not_preloadable(const std::string& path);

}  // namespace sealane::cli
