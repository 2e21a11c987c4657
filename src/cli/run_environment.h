// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How a program is put under the runtime, on the emulated GPU, or both: as variables of its
// environment. `run`, `record` and `bench copy` share it.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/run_options.h"

namespace sealane::cli {

// Variables of a program; one with an empty value is taken away.
using Environment = std::vector<std::pair<std::string, std::string>>;
Result<Environment> environment_for(const RunOptions& options);
void enter(const Environment& environment);  // for whatever this process runs next

// Whether the runtime is among what this process's LD_PRELOAD names for every program.
bool inherits_runtime();

// The runtime's and the emulated GPU's, whichever of them may be loaded into a program.
std::vector<std::string> own_libraries();

// What such a program, the loader or whoever looks at its arguments may read, of files that are
// there: the program and its interpreters, every word of its command line and what follows '=' in
// one, stdin, kernels, the platform, and what is loaded into it.
std::vector<std::string> files_read_by(const RunOptions& options, const std::string& program,
                                       const std::vector<std::string>& command);

std::string shell_quoted(const std::string& text);  // one word to a shell

// "build/examples" or "/usr/lib/sealane/examples": what lies beside this program. `places` are
// below its prefix.
Result<std::string> directory_of(const char* what, const char* file,
                                 std::initializer_list<const char*> places);

}  // namespace sealane::cli
