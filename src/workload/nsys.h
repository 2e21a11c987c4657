// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Nsight Systems' CSV exports of a run with CC off, as a program:
//
//   NAME_cuda_api_trace.csv   who called what when
//   NAME_cuda_gpu_trace.csv   what the device did for it, joined by the correlation id
//
// Columns are found by name, units are read from the header. The program begins with the first copy
// or launch: what is before it is start-up. Host time between the calls becomes think time, calls
// that neither copy nor launch nor wait keep the time they took; of those, CC makes the ones slower
// that make an event or allocate or free device memory.
//
// What the exports do not say is guessed: there are no addresses, so copies of the same size,
// direction and kind of memory share a buffer, the n-th since the last launch the n-th buffer; and
// no events, so a thread that waits for an event waits for the one it recorded last.
//
// Errors are usage errors of one line that names file and line. Safe on arbitrary input.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "base/result.h"
#include "workload/operation.h"

namespace sealane::workload {

// True if `path` is NAME, or one of the two files.
bool is_nsys(const std::string& path);

// The two files.
std::vector<std::string> nsys_files(const std::string& path);

// `path` is NAME, or one of the two files.
Result<Program> load_nsys(const std::string& path);

// How long a run took, with CC on or off: from the first copy or launch call to the end of the last
// operation, less what the first launch took, which loads the module.
Result<Duration> nsys_span(const std::string& path);

// The file names are used in messages only.
Result<Program> parse_nsys(std::istream& api, const std::string& api_file, std::istream& gpu,
                           const std::string& gpu_file);

}  // namespace sealane::workload
