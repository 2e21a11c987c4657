// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as Nsight exports: the two tables are separated by a line of dashes.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "workload/nsys.h"
#include "workload/program_checker.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sealane::workload;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t cut = text.find("\n---\n");
  std::istringstream api(text.substr(0, cut));
  std::istringstream gpu(cut == std::string::npos ? std::string() : text.substr(cut + 5));
  const auto program = parse_nsys(api, "api", gpu, "gpu");
  if (!program) return 0;
  ProgramChecker checker;
  for (const Operation& operation : *program) {
    if (!checker.check(operation)) std::abort();  // what was accepted is no program
  }
  return 0;
}
